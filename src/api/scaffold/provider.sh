#!/usr/bin/env bash
# A sandbox provider: EPP/1 on standard input and output, one JSON object a line.
#
# A sandbox is a directory <data>/sandboxes/<id>/ with record.json and root/; a path of the sandbox is
# a path under root/. This is a place to start from and no isolation: commands run as you.
# Needs bash, jq, flock, and the GNU coreutils and find.
set -uo pipefail
export LC_ALL=C  # lengths and orders are of bytes
BOXES=$(realpath -- "${ABX_PROVIDER_DATA_DIR:-.}")/sandboxes
LINE_LIMIT=$((8 * 1024 * 1024))
mkdir -p -m 700 -- "$BOXES"
WORK=$(mktemp -d -- "$BOXES/.work-XXXXXX")  # a file "<request id>" for each command: its group and sandbox

# A value becomes one quoted shell word. A NUL, which no shell variable holds, spoils the request.
# shellcheck disable=SC2016
WORDS='def w: if . == null then "" elif type == "string" then . else tojson end |
    if explode | any(. == 0) then error("NUL") else @sh end;
def set(name; value): name + "=" + (try (value | w) catch "bad=NUL");'
# The members that become variables, empty where they are missing; one jq for the whole request.
HEAD=$WORDS'set("id"; .id), set("method"; .method), set("cancelled"; .params.id)'
for name in sandbox_id path source destination cmd cwd timeout offset length mode append overwrite limit cursor status; do
    HEAD+=", set(\"$name\"; .params.$name)"
done

# Checks variables that arithmetic will use; what is missing becomes 0.
numbers() {
    local name
    for name; do
        [[ ${!name} =~ ^[0-9]*$ ]] || fail -32602 "$name must be a number that is not negative"
        printf -v "$name" %d "$((10#${!name:-0}))"
    done
}

# Prints the error of the protocol and leaves the handler, which runs in a subshell.
fail() {
    jq -cn --argjson code "$1" --arg message "$2" --arg sdk "${3:-}" --arg feature "${4:-}" '{code: $code, message: $message} +
        (if $sdk != "" then {data: {sdk_code: $sdk}} elif $feature != "" then {data: {details: {feature: $feature}}} else {} end)'
    exit 1
}

# Lines of several subshells don't mix.
answer() {
    local text="{\"jsonrpc\":\"2.0\",\"id\":$1,\"$2\":$3}"
    ((${#text} <= LINE_LIMIT)) ||
        text="{\"jsonrpc\":\"2.0\",\"id\":$1,\"error\":{\"code\":-32000,\"message\":\"the answer is longer than 8 MiB\"}}"
    { flock 9 && printf '%s\n' "$text"; } 9>"$WORK/lock"
}

# Sets box; the pattern keeps ids from being paths.
load() {
    box=$BOXES/$sandbox_id
    [[ $sandbox_id =~ ^sbx-[0-9a-f]{16}$ && -f $box/record.json ]] || fail -32002 "there is no sandbox $sandbox_id" E2009
    root=$box/root
}

# Sets real to the place of a sandbox path; with "link", of a link itself.
inside() {
    local path=$1 name
    while [[ $path == */ ]]; do path=${path%/}; done
    name=${path##*/}
    if [[ ${2:-} == link && $name != '' && $name != . && $name != .. ]]; then
        real=$(realpath -mz -- "$root/${path%"$name"}" | tr -d '\0'; printf x)
        real=${real%x}/$name
    else
        real=$(realpath -mz -- "$root/$path" | tr -d '\0'; printf x)
        real=${real%x}
    fi
    [[ $real == "$root" || $real == "$root"/* ]] || fail -32000 "$1 leaves the sandbox" E4002
}

exists() { [[ -e $1 || -L $1 ]] || fail -32002 "$2: no such file or directory" E4001; }
try() { "$@" || fail -32000 "$1 failed"; }

# Entries as find tells of them, made into JSON.
entries() {
    find "$@" -printf '%y\t%s\t%T@\t%m\t%P\0' | jq -Rsc --arg at "${real#"$root"}" '[split("\u0000")[] | select(. != "") |
        split("\t") | (.[4:] | join("\t")) as $name |
        (if $name == "" and $at == "" then "/" elif $name == "" then $at else $at + "/" + $name end) as $path |
        {name: (if $path == "/" then "/" else ($path | split("/") | last) end), path: $path,
         type: ({d: "dir", l: "symlink"}[.[0]] // "file"), size: (.[1] | tonumber), mtime: (.[2] | tonumber | floor | todate),
         mode: (.[3] | explode | reduce .[] as $c (0; . * 8 + $c - 48))}] | sort_by(.name)'
}

initialize() {
    jq -c '{protocol: "epp/1", plugin: {name: (.params.provider_id // "provider"), version: "0.1.0"},
        features: ["sandbox.lifecycle", "exec.run", "files.rw"], operation_contract_version: 1,
        operations: {cli: [], python: ["exec.run", "files.list", "files.move", "files.read", "files.remove", "files.stat",
            "files.write", "sandbox.create", "sandbox.delete", "sandbox.get", "sandbox.list"]},
        workflow_inputs: [], startup_modes: []}' <<<"$line"
}

sandbox_create() {
    local id all
    id=sbx-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    all=$(jq -c --arg id "$id" '.params | {record: {sandbox_id: $id, template: (.template // ""), status: "running",
        metadata: (.metadata // {}), created_at: (now | floor | todate)}, envs: (.envs // {})}' <<<"$line") ||
        fail -32602 "bad parameters"
    try mkdir -- "$BOXES/$id" "$BOXES/$id/root"
    printf '%s\n' "$all" >"$BOXES/$id/record.json" || fail -32000 "the record can't be written"
    jq -c .record <<<"$all"
}

sandbox_list() {
    numbers limit
    local all i
    shopt -s nullglob
    all=("$BOXES"/sbx-*/record.json)
    for i in "${!all[@]}"; do [[ ${all[i]} > $BOXES/$cursor/record.json ]] || unset "all[i]"; done
    cat /dev/null "${all[@]}" | jq -sc --argjson limit "$limit" --arg status "$status" 'map(.record) | sort_by(.sandbox_id) |
        if $status != "" and $status != "running" then [] else . end | . as $all |
        (if $limit > 0 then .[:$limit] else . end) as $page | {sandboxes: $page} +
        (if ($page | length) < ($all | length) then {next: ($page | last).sandbox_id} else {} end)'
}

# Ends the groups of the commands whose file in $WORK the pattern names, and of sandbox $2 if given.
kill_commands() {
    local file group of
    for file in "$WORK"/$1.run; do
        [[ -f $file ]] && read -r group of <"$file" && [[ ${2:-$of} == "$of" ]] && kill -KILL -- "-$group" 2>/dev/null
    done
}

sandbox_kill() {
    load
    kill_commands '*' "$sandbox_id"
    try rm -rf -- "$box/record.json" "$box"
    echo '{}'
}

# Runs argv without a shell. Output goes to files, so that a background child can't hold up the answer.
exec_run() {
    load
    numbers timeout
    local out=$WORK/$id.out err=$WORK/$id.err late=$WORK/$id.late argv env group watch='' code
    inside "$cwd"
    [[ -d $real ]] || fail -32002 "there is no directory $cwd" E4001
    [[ $cmd != *=* ]] || fail -32602 "env(1) can't run a command with = in its name"
    # shellcheck disable=SC2016
    argv=$(jq -r "$WORDS"' [.params.cmd, (.params.args // [])[] | w] | join(" ")' <<<"$line") &&
        env=$(jq -r --slurpfile all "$box/record.json" "$WORDS"' $all[0].envs + (.params.env // {}) | to_entries |
            map("\(.key)=\(.value | if type == "string" then . else tojson end)" | w) | join(" ")' <<<"$line") ||
        fail -32602 "bad parameters"
    eval "argv=($argv)" "env=($env)"
    set -m  # each job is a process group of its own
    { cd -- "$real" && exec env -i "PATH=$PATH" "HOME=$root" "${env[@]}" "${argv[@]}"; } </dev/null >"$out" 2>"$err" &
    group=$!
    printf '%s %s\n' "$group" "$sandbox_id" >"$WORK/$id.run"
    [[ ! -e $WORK/$id.cancelled ]] || kill -KILL -- "-$group"
    if ((timeout > 0)); then
        { sleep "$timeout" && : >"$late" && kill -KILL -- "-$group"; } </dev/null >/dev/null 2>&1 &
        watch=$!
    fi
    wait "$group" 2>/dev/null
    code=$?
    # A directory of PATH that can't be read makes env(1) say 126 of a command that is missing.
    [[ $code != 126 || $cmd == */* ]] || type -P -- "$cmd" >/dev/null || code=127
    rm -f -- "$WORK/$id.run"
    [[ -z $watch ]] || kill -KILL -- "-$watch" 2>/dev/null
    [[ ! -e $late ]] || fail -32000 "the command ran longer than $timeout s" E3001
    (($(stat -c %s -- "$out") + $(stat -c %s -- "$err") <= LINE_LIMIT)) || fail -32000 "the output is longer than 8 MiB"
    jq -cn --rawfile out "$out" --rawfile err "$err" --argjson code "$code" '{stdout: $out, stderr: $err, exit_code: $code}'
}

files_read() {
    load
    length=${length:-$LINE_LIMIT}
    numbers offset length
    inside "$path"
    exists "$real" "$path"
    [[ -f $real ]] || fail -32000 "$path is not a regular file"
    printf '{"content_b64":"%s"}' "$(tail -c "+$((offset + 1))" -- "$real" | head -c "$length" | base64 -w0)"
}

files_write() {
    load
    [[ -z $mode ]] || numbers mode
    inside "$path"
    [[ ! -e $real || -f $real ]] || fail -32000 "$path is not a regular file"
    local content=$WORK/$id.in
    jq -j '.params.content_b64 | if type == "string" then . else error("no string") end' <<<"$line" |
        base64 -d >"$content" || fail -32602 "content_b64 is not base64"
    try mkdir -p -- "${real%/*}"
    [[ $append == true || ! -e $real ]] || : >"$real" || fail -32000 "$path can't be written"
    cat -- "$content" >>"$real" || fail -32000 "$path can't be written"
    [[ -z $mode ]] || try chmod "$(printf %o "$((mode & 0777))")" -- "$real"
    echo '{}'
}

files_list() {
    load
    inside "$path"
    exists "$real" "$path"
    [[ -d $real ]] || fail -32000 "$path is not a directory"
    entries "$real" -mindepth 1 -maxdepth 1 | jq -c '{entries: .}'
}

files_stat() {
    load
    inside "$path" link
    exists "$real" "$path"
    entries "$real" -maxdepth 0 | jq -c '.[0]'
}

files_mkdir() {
    load
    inside "$path"
    try mkdir -p -- "$real"
    echo '{}'
}

files_remove() {
    load
    inside "$path" link
    [[ $real != "$root" ]] || fail -32000 "the root of a sandbox can't be removed" E4002
    exists "$real" "$path"
    try rm -rf -- "$real"
    echo '{}'
}

files_move() {
    load
    inside "$source" link
    local from=$real
    exists "$from" "$source"
    inside "$destination" link
    [[ $from != "$root" && $real/ != "$from"/* && $from/ != "$real"/* ]] || fail -32000 "$source can't be moved to $destination"
    [[ (! -e $real && ! -L $real) || $overwrite == true ]] || fail -32000 "$destination exists"
    try rm -rf -- "$real"
    try mkdir -p -- "${real%/*}"
    try mv -T -- "$from" "$real"
    echo '{}'
}

sandbox_get() {
    load
    jq -c .record "$box/record.json"
}

# Runs one method; what it prints is the result, or the error when it failed.
handle() {
    local body kind=result
    [[ -z $bad ]] || method=bad
    case $method in
        bad) body=$(fail -32602 'a parameter has a NUL') || kind=error ;;
        shutdown) body='{}' ;;
        initialize | sandbox.create | sandbox.get | sandbox.list | sandbox.kill | exec.run | files.read | files.write | \
            files.list | files.stat | files.mkdir | files.remove | files.move) body=$("${method/./_}" </dev/null) || kind=error ;;
        *) body=$(lacking) || kind=error ;;
    esac
    answer "$id" "$kind" "${body:-null}"
    rm -f -- "$WORK/$id".*
}

# The features this provider has not, and what is no method at all.
lacking() {
    local feature=''
    case $method in
        sandbox.set_timeout) feature=sandbox.timeout ;;
        sandbox.pause | sandbox.resume) feature=sandbox.pause ;;
        exec.start) feature=exec.stream ;;
        files.watch | files.unwatch) feature=files.watch ;;
        process.*) feature=process.manage ;;
        pty.*) feature=pty ;;
        ports.*) feature=ports.url ;;
        session.*) feature=sessions ;;
        *) fail -32601 "there is no method $method" ;;
    esac
    fail -32003 "$method is not supported" '' "$feature"
}

trap 'kill_commands "*"; rm -rf -- "$WORK"' EXIT
while IFS= read -r line; do
    bad=''
    words=$(jq -r "$HEAD" <<<"$line") && eval "$words" || continue
    if [[ $method == '$/cancel' ]]; then
        : >"$WORK/$cancelled.cancelled"
        kill_commands "$cancelled"
    elif [[ $method == exec.run ]]; then
        handle &
    elif [[ $id != '' ]]; then
        handle
        [[ $method != shutdown ]] || break
    fi
done
