/* JSON in: simdjson's DOM parser behind C functions, with the checks it leaves out.
 *
 * A json_ref is an index into simdjson's tape; nothing here copies a string except
 * json_to_value(). No exception leaves this file. */
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

extern "C" {
#include "base/codec.h"
#include "base/limits.h"
}
#include "json/json.h"
#include "json/value.h"

using simdjson::internal::tape_ref;
using simdjson::internal::tape_type;
namespace dom = simdjson::dom;

static_assert(JSON_PADDING >= simdjson::SIMDJSON_PADDING, "simdjson reads this far behind a text");
static_assert(LIMIT_LINE < 0xffffffffu, "positions on the tape have 32 bits");

/* Storage grows in powers of two from here: most plugins never need more. */
static constexpr size_t CAPACITY_MIN = 16 * KIB;
/* simdjson makes no storage smaller than 32 bytes. */
static constexpr size_t MAX_LEN_MIN = 64;
/* Storage above this is given back after so many texts in a row that did not need it. */
static constexpr size_t CAPACITY_KEEP = 512 * KIB;
static constexpr unsigned SHRINK_AFTER = 64;
/* Objects up to this size are checked for duplicate keys pair by pair. */
static constexpr size_t PAIRWISE_MAX = 16;

struct json_parser {
    dom::parser parser;
    size_t max_len;
    unsigned small_in_row;
    std::vector<std::string_view> keys; /* of the object being checked */
};

struct json_parser *json_parser_new(size_t max_len) try {
    max_len = std::max(max_len, MAX_LEN_MIN);
    return new json_parser{dom::parser(max_len), max_len, 0, {}};
} catch (...) {
    return nullptr;
}

void json_parser_free(struct json_parser *p) {
    delete p;
}

static int resize(json_parser *p, size_t capacity) {
    p->small_in_row = 0;
    /* simdjson counts the depth of scalars too, hence one more. */
    if (p->parser.doc.allocate(capacity) || p->parser.allocate(capacity, LIMIT_JSON_DEPTH + 1)) {
        /* What is left may be half allocated: start over with the next text. */
        p->parser = dom::parser(p->max_len);
        return -ENOMEM;
    }
    return 0;
}

/* Room for a text of n bytes, and no more than is useful lately. */
static int fit(json_parser *p, size_t n) {
    size_t have = p->parser.capacity(), want = CAPACITY_MIN;
    while (want < n) want *= 2;
    if (have < n || p->parser.doc.capacity() < n) return resize(p, std::min(want, p->max_len));
    if (have <= CAPACITY_KEEP || n > CAPACITY_KEEP) {
        p->small_in_row = 0;
        return 0;
    }
    return ++p->small_in_row < SHRINK_AFTER ? 0 : resize(p, want);
}

static const char *reason(simdjson::error_code e) {
    switch (e) {
    case simdjson::CAPACITY: return "the text is too long";
    case simdjson::DEPTH_ERROR: return "nested too deeply";
    case simdjson::EMPTY: return "the text is empty";
    case simdjson::UTF8_ERROR: return "not valid UTF-8";
    case simdjson::STRING_ERROR: return "a string is malformed";
    case simdjson::UNESCAPED_CHARS: return "a string holds an unescaped control character";
    case simdjson::UNCLOSED_STRING: return "a string is not closed";
    case simdjson::NUMBER_ERROR: return "a number is malformed or out of range";
    default: return "malformed syntax";
    }
}

/* simdjson turns an escaped lone surrogate into three bytes no valid text holds. */
static bool has_surrogate(std::string_view s) {
    for (size_t i = 0; i + 2 < s.size(); i++) {
        const void *hit = memchr(s.data() + i, 0xed, s.size() - 2 - i);
        if (!hit) return false;
        i = size_t(static_cast<const char *>(hit) - s.data());
        if (static_cast<unsigned char>(s[i + 1]) >= 0xa0) return true;
    }
    return false;
}

static bool shorter_or_less(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return a.size() < b.size();
    return a < b;
}

/* The tape of an object: its start, then key and value by turns, then its end. */
static bool has_duplicates(json_parser *p, tape_ref object) {
    std::vector<std::string_view> &keys = p->keys;
    size_t end = object.matching_brace_index() - 1;
    keys.clear();
    for (tape_ref at(object.doc, object.json_index + 1); at.json_index < end;) {
        keys.push_back(at.get_string_view());
        at.json_index++;
        at.json_index = at.after_element();
    }
    if (keys.size() <= PAIRWISE_MAX) {
        for (size_t i = 1; i < keys.size(); i++)
            for (size_t j = 0; j < i; j++)
                if (keys[i] == keys[j]) return true;
        return false;
    }
    std::sort(keys.begin(), keys.end(), shorter_or_less);
    return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

/* What simdjson accepts and we do not; one pass over the flat tape, no recursion. */
static const char *check(json_parser *p, const dom::document &doc, bool escapes) {
    tape_ref at(&doc, 0);
    size_t end = at.matching_brace_index() - 1; /* the closing root word */
    unsigned depth = 0;
    for (at.json_index = 1; at.json_index < end;) {
        switch (at.tape_ref_type()) {
        case tape_type::START_OBJECT:
            if (has_duplicates(p, at)) return "a key occurs twice in an object";
            [[fallthrough]];
        case tape_type::START_ARRAY:
            if (++depth > LIMIT_JSON_DEPTH) return "nested too deeply";
            at.json_index++;
            break;
        case tape_type::END_OBJECT:
        case tape_type::END_ARRAY:
            depth--;
            at.json_index++;
            break;
        case tape_type::STRING:
            if (escapes && has_surrogate(at.get_string_view())) return "a string holds a lone surrogate";
            at.json_index++;
            break;
        case tape_type::DOUBLE:
            if (!std::isfinite(at.next_tape_value<double>())) return "a number is out of range";
            [[fallthrough]];
        default: at.json_index = at.after_element();
        }
    }
    return nullptr;
}

int json_parse(struct json_parser *p, const char *text, size_t n, struct json_ref *ret_root, const char **ret_reason) try {
    const char *bad = nullptr;
    if (n == 0) bad = reason(simdjson::EMPTY);
    if (n > p->max_len) bad = reason(simdjson::CAPACITY);
    if (!bad) {
        int r = fit(p, n);
        if (r < 0) return r;
        simdjson::error_code e = p->parser.parse(text, n, false).error();
        if (e == simdjson::MEMALLOC) return -ENOMEM;
        if (e) bad = reason(e);
    }
    if (!bad) bad = check(p, p->parser.doc, memchr(text, '\\', n) != nullptr);
    /* A huge object must not leave its list of keys behind. */
    if (p->keys.capacity() > 4096) std::vector<std::string_view>().swap(p->keys);
    if (bad) {
        if (ret_reason) *ret_reason = bad;
        return -EBADMSG;
    }
    *ret_root = {&p->parser.doc, 1};
    return 0;
} catch (...) {
    return -ENOMEM;
}

static inline tape_ref tape_of(struct json_ref r) {
    return tape_ref(static_cast<const dom::document *>(r.doc), r.index);
}

static inline struct json_ref ref_of(tape_ref t) {
    return {t.doc, t.json_index};
}

static inline bool is(struct json_ref r, tape_type t) {
    return r.doc && tape_of(r).tape_ref_type() == t;
}

abx_type json_type(struct json_ref r) {
    if (!r.doc) return ABX_TYPE_NULL;
    switch (tape_of(r).tape_ref_type()) {
    case tape_type::TRUE_VALUE:
    case tape_type::FALSE_VALUE: return ABX_TYPE_BOOL;
    case tape_type::INT64: return ABX_TYPE_INT;
    case tape_type::UINT64: return ABX_TYPE_UINT;
    case tape_type::DOUBLE: return ABX_TYPE_DOUBLE;
    case tape_type::STRING: return ABX_TYPE_STRING;
    case tape_type::START_ARRAY: return ABX_TYPE_ARRAY;
    case tape_type::START_OBJECT: return ABX_TYPE_OBJECT;
    default: return ABX_TYPE_NULL;
    }
}

bool json_present(struct json_ref r) {
    return r.doc != nullptr;
}

struct json_ref json_get(struct json_ref object, const char *key) {
    if (!is(object, tape_type::START_OBJECT)) return {};
    std::string_view wanted(key);
    tape_ref at = tape_of(object);
    size_t end = at.matching_brace_index() - 1;
    for (at.json_index++; at.json_index < end; at.json_index = at.after_element()) {
        bool hit = at.get_string_view() == wanted;
        at.json_index++;
        if (hit) return ref_of(at);
    }
    return {};
}

bool json_string(struct json_ref r, const char **ret, size_t *ret_len) {
    if (!is(r, tape_type::STRING)) return false;
    *ret = tape_of(r).get_c_str();
    if (ret_len) *ret_len = tape_of(r).get_string_length();
    return true;
}

bool json_int(struct json_ref r, int64_t *ret) {
    if (is(r, tape_type::INT64)) {
        *ret = tape_of(r).next_tape_value<int64_t>();
        return true;
    }
    if (!is(r, tape_type::DOUBLE)) return false;
    double d = tape_of(r).next_tape_value<double>();
    if (!(d >= -0x1p63 && d < 0x1p63) || d != std::trunc(d)) return false;
    *ret = static_cast<int64_t>(d);
    return true;
}

bool json_bool(struct json_ref r, bool *ret) {
    if (json_type(r) != ABX_TYPE_BOOL) return false;
    *ret = is(r, tape_type::TRUE_VALUE);
    return true;
}

struct json_iter json_iter(struct json_ref container) {
    abx_type t = json_type(container);
    if (t != ABX_TYPE_ARRAY && t != ABX_TYPE_OBJECT) return {};
    tape_ref at = tape_of(container);
    /* left counts words of the tape: the one of the object's end tells keys from items. */
    size_t end = at.matching_brace_index() - 1;
    return {{at.doc, at.json_index + 1}, end - at.json_index - 1};
}

bool json_next(struct json_iter *it, const char **ret_key, size_t *ret_key_len, struct json_ref *ret_value) {
    if (it->left == 0) return false;
    tape_ref at = tape_of(it->next);
    size_t end = at.json_index + it->left;
    const char *key = nullptr;
    size_t key_len = 0;
    if (tape_ref(at.doc, end).tape_ref_type() == tape_type::END_OBJECT) {
        key = at.get_c_str();
        key_len = at.get_string_length();
        at.json_index++;
    }
    if (ret_key) *ret_key = key;
    if (ret_key_len) *ret_key_len = key_len;
    *ret_value = ref_of(at);
    at.json_index = at.after_element();
    it->next = ref_of(at);
    it->left = end - at.json_index;
    return true;
}

static int copy_string(tape_ref t, abx_value **ret) {
    size_t n = t.get_string_length();
    char *to;
    *ret = value_new_text(ABX_TYPE_STRING, n, &to);
    if (!*ret) return -ENOMEM;
    memcpy(to, t.get_c_str(), n);
    return 0;
}

static abx_value *new_bytes(const struct json_bytes *bytes, size_t n, char **ret_data) {
    if (!bytes->make) return value_new_text(ABX_TYPE_BYTES, n, ret_data);
    void *owner = nullptr, *data = bytes->make(n, &owner);
    if (!data) return nullptr;
    *ret_data = static_cast<char *>(data);
    return abx_value_new_bytes_take(data, n, bytes->release, owner);
}

/* From simdjson's string straight into the bytes of the value. */
static int decode_bytes(tape_ref t, const struct json_bytes *bytes, abx_value **ret) {
    size_t n = t.get_string_length();
    const char *text = t.get_c_str();
    size_t padding = n && text[n - 1] == '=' ? 1 + (n > 1 && text[n - 2] == '=') : 0;
    size_t size = n / 4 * 3 - std::min(padding, n / 4 * 3);
    char *to;
    abx_value *v = new_bytes(bytes, size, &to);
    if (!v) return -ENOMEM;
    if (base64_decode(to, text, n) != static_cast<long>(size)) {
        abx_value_unref(v);
        return -EINVAL;
    }
    to[size] = '\0';
    *ret = v;
    return 0;
}

static int copy_any(struct json_ref r, const struct json_bytes *bytes, abx_value **ret);

static int copy_list(struct json_ref r, const struct json_bytes *bytes, abx_value *list) {
    struct json_iter it = json_iter(r);
    const char *key;
    size_t key_len;
    struct json_ref item;
    while (json_next(&it, &key, &key_len, &item)) {
        abx_value *v = nullptr;
        bool coded = bytes && key && std::string_view(key, key_len) == bytes->key && is(item, tape_type::STRING);
        int rc = coded ? decode_bytes(tape_of(item), bytes, &v) : copy_any(item, nullptr, &v);
        if (rc == 0) rc = value_push(list, key, key_len, v);
        if (rc < 0) return rc;
    }
    return 0;
}

/* Recurses as deep as the document, which json_parse() has limited. */
static int copy_any(struct json_ref r, const struct json_bytes *bytes, abx_value **ret) {
    abx_value *v = nullptr;
    int rc = 0;
    switch (json_type(r)) {
    case ABX_TYPE_BOOL: v = abx_value_new_bool(is(r, tape_type::TRUE_VALUE)); break;
    case ABX_TYPE_INT: v = abx_value_new_int(tape_of(r).next_tape_value<int64_t>()); break;
    case ABX_TYPE_UINT: v = abx_value_new_uint(tape_of(r).next_tape_value<uint64_t>()); break;
    case ABX_TYPE_DOUBLE: v = abx_value_new_double(tape_of(r).next_tape_value<double>()); break;
    case ABX_TYPE_STRING: rc = copy_string(tape_of(r), &v); break;
    case ABX_TYPE_ARRAY:
    case ABX_TYPE_OBJECT:
        v = json_type(r) == ABX_TYPE_ARRAY ? abx_value_new_array() : abx_value_new_object();
        if (v) rc = copy_list(r, bytes, v);
        break;
    default: v = abx_value_new_null();
    }
    if (rc == 0 && !v) rc = -ENOMEM;
    if (rc < 0) {
        abx_value_unref(v);
        return rc;
    }
    *ret = v;
    return 0;
}

int json_to_value(struct json_ref r, const struct json_bytes *bytes, abx_value **ret) {
    return copy_any(r, bytes, ret);
}

size_t json_format_double(double d, char out[JSON_DOUBLE_MAX]) {
    /* "-d.ddde-XX": the shortest digits that read back; laid out as Python does. */
    char sci[32];
    char *end = std::to_chars(sci, sci + sizeof(sci), d, std::chars_format::scientific).ptr;
    char digits[24];
    size_t n = 0, at = 0;
    const char *s = sci;
    if (*s == '-') out[at++] = *s++;
    for (; s < end && *s != 'e'; s++)
        if (*s != '.') digits[n++] = *s;
    if (s == end) return 0;
    int exponent = 0;
    s += s[1] == '+' ? 2 : 1;
    std::from_chars(s, end, exponent);
    auto put = [&](const char *from, size_t len) {
        memcpy(out + at, from, len);
        at += len;
    };
    if (exponent >= 16 || exponent < -4) {
        put(digits, 1);
        if (n > 1) put(".", 1), put(digits + 1, n - 1);
        put(exponent < 0 ? "e-" : "e+", 2);
        unsigned e = static_cast<unsigned>(std::abs(exponent));
        if (e < 10) put("0", 1);
        at = static_cast<size_t>(std::to_chars(out + at, out + JSON_DOUBLE_MAX, e).ptr - out);
    } else if (exponent < 0) {
        put("0.", 2);
        put("000", static_cast<size_t>(-exponent - 1));
        put(digits, n);
    } else {
        size_t whole = static_cast<size_t>(exponent) + 1;
        put(digits, std::min(n, whole));
        for (size_t i = n; i < whole; i++) put("0", 1);
        put(".", 1);
        if (n > whole) put(digits + whole, n - whole);
        else put("0", 1);
    }
    return at;
}
