/* TOML in: toml++ behind C functions. No exception leaves this file. */
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <locale>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include "base/limits.h"
#include "base/utf8.h"
}
#include "toml/scan.h"
#include "toml/toml.h"

namespace {

/* What the conversion does not accept; caught below. */
struct refusal {
    int code;
    const char *reason;
    toml::source_position at;
};

using value_ptr = std::unique_ptr<abx_value, abx_value *(*)(abx_value *)>;

value_ptr own(abx_value *v) {
    if (!v) throw std::bad_alloc();
    return value_ptr(v, abx_value_unref);
}

value_ptr from_text(std::string_view s) {
    return own(abx_value_new_string_n(s.data(), s.size()));
}

template <typename T> value_ptr from_time(const T &t) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << t;
    return from_text(out.str());
}

value_ptr from_float(double d) {
    if (std::isfinite(d)) return own(abx_value_new_double(d));
    return from_text(std::isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
}

void must(int r, const toml::node &node) {
    if (r == -ENOMEM) throw std::bad_alloc();
    if (r < 0) throw refusal{-EBADMSG, "nested too deeply", node.source().begin};
}

value_ptr from_node(const toml::node &node, unsigned depth);

/* toml++ sorts its tables by key; we want them as they stand in the text. */
value_ptr from_table(const toml::table &table, unsigned depth) {
    std::vector<std::pair<const toml::key *, const toml::node *>> order;
    for (auto it = table.cbegin(); it != table.cend(); ++it) order.emplace_back(&it->first, &it->second);
    std::stable_sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
        return a.first->source().begin < b.first->source().begin;
    });
    value_ptr v = own(abx_value_new_object());
    for (const auto &[key, node] : order) {
        if (key->str().find('\0') != std::string_view::npos)
            throw refusal{-EBADMSG, "a key holds a NUL character", key->source().begin};
        std::string name(key->str());
        must(abx_value_set(v.get(), name.c_str(), from_node(*node, depth).release()), *node);
    }
    return v;
}

value_ptr from_node(const toml::node &node, unsigned depth) {
    if (depth == 0) throw refusal{-EBADMSG, "nested too deeply", node.source().begin};
    switch (node.type()) {
    case toml::node_type::table: return from_table(*node.as_table(), depth - 1);
    case toml::node_type::array: {
        value_ptr v = own(abx_value_new_array());
        for (const toml::node &item : *node.as_array())
            must(abx_value_append(v.get(), from_node(item, depth - 1).release()), item);
        return v;
    }
    case toml::node_type::string: return from_text(node.as_string()->get());
    case toml::node_type::integer: return own(abx_value_new_int(node.as_integer()->get()));
    case toml::node_type::floating_point: return from_float(node.as_floating_point()->get());
    case toml::node_type::boolean: return own(abx_value_new_bool(node.as_boolean()->get()));
    case toml::node_type::date: return from_time(node.as_date()->get());
    case toml::node_type::time: return from_time(node.as_time()->get());
    case toml::node_type::date_time: return from_time(node.as_date_time()->get());
    default: return own(abx_value_new_null());
    }
}

/* Columns count code points. */
struct toml_pos pos_of(const char *text, size_t at) {
    struct toml_pos pos = {1, 1};
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') pos = {pos.line + 1, 1};
        else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) pos.column++;
    }
    return pos;
}

int refuse(const char *reason, struct toml_pos pos, char **ret_reason, struct toml_pos *ret_pos) {
    char *line = utf8_sanitize_str(reason);
    if (!line) return -ENOMEM;
    if (ret_reason) *ret_reason = line;
    else free(line);
    if (ret_pos) *ret_pos = pos;
    return -EBADMSG;
}

struct toml_pos pos_of(const toml::source_position &p) {
    return {p.line, p.column};
}

size_t first_invalid(const char *text, size_t n) {
    size_t at = 0;
    uint32_t cp;
    for (size_t len; at < n && (len = utf8_decode(text + at, n - at, &cp)) > 0;) at += len;
    return at;
}

} // namespace

int toml_parse(const char *text, size_t n, abx_value **ret, char **ret_reason, struct toml_pos *ret_pos) try {
    if (!utf8_valid(text, n))
        return refuse("not valid UTF-8", pos_of(text, first_invalid(text, n)), ret_reason, ret_pos);
    size_t at = 0;
    const char *bad = toml_guard({text, n}, &at);
    if (bad) return refuse(bad, pos_of(text, at), ret_reason, ret_pos);
    try {
        toml::table root = toml::parse(std::string_view(n ? text : "", n));
        *ret = from_node(root, LIMIT_JSON_DEPTH).release();
        return 0;
    } catch (const toml::parse_error &e) {
        return refuse(e.what(), pos_of(e.source().begin), ret_reason, ret_pos);
    } catch (const refusal &e) {
        return refuse(e.reason, pos_of(e.at), ret_reason, ret_pos);
    }
} catch (...) {
    return -ENOMEM;
}
