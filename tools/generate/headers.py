# SPDX-License-Identifier: Apache-2.0
"""Writes the C header of each message, and the tables' headers: apis.h, errors.h, metadata_records.h."""

from schema import ANY, snake

C_TYPES = {
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "float64": "double",
    "uuid": "struct uuid",
    "string": "struct slice",
    "bytes": "struct slice",
    "records": "struct kp_records",
}
NOTE = "// SPDX-License-Identifier: Apache-2.0\n"


def struct_name(message, struct):
    base = "kp_" + message.c_name
    return base if struct is message.structs[0] else f"{base}_{snake(struct.name)}"


def versions_text(versions):
    first, last = versions
    if last == ANY:
        return f"v{first}+"
    return f"v{first}" if first == last else f"v{first}-{last}"


def field_comment(message, field):
    parts = []
    if field.versions != (0, ANY):
        parts.append(versions_text(field.versions))
    if field.tag is not None:
        parts.append(f"tag {field.tag}")
    if field.nullable:
        parts.append("or null" if field.nullable == (0, ANY) else f"or null {versions_text(field.nullable)}")
    if field.default not in (None, "null"):
        parts.append(f"default {str(field.default).lower()}")
    text = ", ".join(parts)
    if field.comment:
        text = f"{text}: {field.comment}" if text else field.comment
    return text


def c_field_lines(message, field):
    name = snake(field.name)
    c_type = f"struct {struct_name(message, message.struct(field.type))}" if field.is_struct else C_TYPES[field.type]
    comment = field_comment(message, field)
    tail = f" // {comment}" if comment else ""
    if field.array:
        return [f"    {c_type} *{name};{tail}", f"    int32_t {name}_count;"]
    if field.is_struct and field.nullable:
        return [f"    {c_type} *{name};{tail}"]
    return [f"    {c_type} {name};{tail}"]


def in_dependency_order(message):
    done, out = set(), []

    def visit(struct):
        if struct.name in done:
            return
        done.add(struct.name)
        for f in struct.fields:
            if f.is_struct:
                visit(message.struct(f.type))
        out.append(struct)

    visit(message.structs[0])
    return out


def message_header(message):
    name = "kp_" + message.c_name
    guard = f"KRAFT_PROTOCOL_GEN_{message.c_name.upper()}_H"
    first, last = message.versions
    flexible = "never flexible" if message.flexible == ANY else f"flexible from {message.flexible}"
    out = [
        NOTE + f"// {message.name}, versions {first}-{last}, {flexible}: {message.comment}",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "core/protocol/codec.h"',
        "",
        f"#define {name.upper()}_MIN_VERSION {first}",
        f"#define {name.upper()}_MAX_VERSION {last}",
        "",
    ]
    for struct in in_dependency_order(message):
        out.append(f"struct {struct_name(message, struct)} {{")
        for field in struct.fields:
            out += c_field_lines(message, field)
        if message.flexible != ANY:
            out.append("    struct kp_unknown_tags unknown_tags; // tagged fields that the schema does not know")
        elif not struct.fields:
            out.append("    char nothing; // no field at any version")
        out += ["};", ""]
    out += [f"extern const struct kp_message_type {name}_type;", ""]
    for index, struct in enumerate(message.structs):
        s = struct_name(message, struct)
        call = f"kp_struct_init(&{name}_type, {index}, m)" if index else f"kp_message_init(&{name}_type, m)"
        out += [f"static inline void {s}_init(struct {s} *m)", "{", f"    {call};", "}"]
    out += [
        f"static inline int {name}_decode(struct {name} *m, struct kp_reader *r, int16_t version)",
        "{",
        f"    return kp_message_decode(&{name}_type, m, r, version);",
        "}",
        f"static inline int {name}_encode(const struct {name} *m, struct rope *out, int16_t version)",
        "{",
        f"    return kp_message_encode(&{name}_type, m, out, version);",
        "}",
        f"static inline size_t {name}_size(const struct {name} *m, int16_t version)",
        "{",
        f"    return kp_message_size(&{name}_type, m, version);",
        "}",
        "",
        "#endif",
    ]
    return "\n".join(out) + "\n"


def apis_header(apis):
    out = [
        NOTE + "// The API keys and, per key, what the protocol says of it.",
        "#ifndef KRAFT_PROTOCOL_GEN_APIS_H",
        "#define KRAFT_PROTOCOL_GEN_APIS_H",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        "enum kp_api {",
    ]
    out += [f"    KP_API_{snake(a.name).upper()} = {a.key}," for a in apis if not a.removed]
    out += [
        "};",
        f"#define KP_API_COUNT {apis[-1].key + 1} // one past the highest key",
        "",
        "#define KP_LISTENER_BROKER 1u     // served on broker listeners",
        "#define KP_LISTENER_CONTROLLER 2u // served on controller listeners",
        "",
        "struct kp_api_info {",
        '    const char *name;      // e.g. "Produce"; NULL: the key is not in use',
        "    int16_t key;           // API key",
        "    int16_t min_version;   // lowest version that the codec knows",
        "    int16_t max_version;   // highest version that the codec knows",
        "    int16_t max_stable;    // highest version that is advertised without asking for unstable ones",
        "    int16_t flexible_from; // first flexible version; 32767: none",
        "    uint8_t listeners;     // KP_LISTENER_ bits",
        "    bool forwarded;        // a broker forwards it to the active controller",
        "    bool cluster_action;   // server to server: needs ClusterAction on the cluster",
        "};",
        "",
        "extern const struct kp_api_info kp_apis[KP_API_COUNT]; // by key; see `name`",
        "",
        "// Row of a key; NULL where the key is unknown or no longer in use.",
        "const struct kp_api_info *kp_api_find(int key);",
        "",
        "// Version of the request header (1, 2) and response header (0, 1) of a key and version.",
        "int kp_api_request_header_version(const struct kp_api_info *api, int version);",
        "int kp_api_response_header_version(const struct kp_api_info *api, int version); // ApiVersions: always 0",
        "",
        "#endif",
    ]
    return "\n".join(out) + "\n"


def errors_header(errors):
    out = [
        NOTE + "// The protocol's error codes.",
        "#ifndef KRAFT_PROTOCOL_GEN_ERRORS_H",
        "#define KRAFT_PROTOCOL_GEN_ERRORS_H",
        "",
        "#include <stdbool.h>",
        "",
        '#include "core/base/slice.h"',
        "",
        "enum kafka_error {",
    ]
    out += [f"    KE_{name} = {code}, // {text}" for code, name, _, text in errors]
    out += [
        "};",
        f"#define KAFKA_ERROR_MIN ({errors[0][0]})",
        f"#define KAFKA_ERROR_MAX {errors[-1][0]}",
        "",
        'const char *kafka_error_name(int code);   // e.g. "NOT_LEADER_OR_FOLLOWER"; "UNKNOWN" for codes that do not exist',
        "const char *kafka_error_text(int code);   // default message",
        "bool kafka_error_is_retriable(int code);  // the same request may succeed later",
        "bool kafka_error_by_name(struct slice name, enum kafka_error *out); // false: no such name",
        "",
        "#endif",
    ]
    return "\n".join(out) + "\n"


def metadata_member(message):
    return message.c_name[: -len("_record")]


def metadata_header(messages):
    rows = sorted((m for m in messages if m.kind == "metadata"), key=lambda m: m.key)
    out = [
        NOTE + "// The records of the cluster metadata log: their types and a union of all of them.",
        "#ifndef KRAFT_PROTOCOL_GEN_METADATA_RECORDS_H",
        "#define KRAFT_PROTOCOL_GEN_METADATA_RECORDS_H",
        "",
    ]
    out += [f'#include "core/protocol/gen/{m.c_name}.h"' for m in rows]
    out += ["", "enum metadata_record_type {"]
    out += [f"    METADATA_{metadata_member(m).upper()} = {m.key}," for m in rows]
    out += ["};", f"#define METADATA_RECORD_TYPES {rows[-1].key + 1} // one past the highest type", ""]
    out.append("union metadata_record_body {")
    out += [f"    struct kp_{m.c_name} {metadata_member(m)};" for m in rows]
    out += ["};", "", "#endif"]
    return "\n".join(out) + "\n"
