# SPDX-License-Identifier: Apache-2.0
"""Writes the C tables of the codec: a program per struct and version, fields, structs, lookups."""

from headers import NOTE, struct_name
from schema import ANY, SCALARS, SchemaError, snake

KINDS = {name: f"KP_{name.upper()}" for name in SCALARS}
FIXED = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}


class Names:
    """One blob of all names; equal names share their bytes."""

    def __init__(self):
        self.offsets, self.list, self.end = {}, [], 0

    def offset(self, name):
        if name not in self.offsets:
            self.offsets[name] = self.end
            self.list.append(name)
            self.end += len(name) + 1
            if self.end > 65535:
                raise SchemaError("names no longer fit 16 bits")
        return self.offsets[name]


def covers(versions, version):
    return versions is not None and versions[0] <= version <= versions[1]


def zero_default(field):
    """True where all-zero bytes are the default."""
    if field.array:
        return field.default != "null"
    if field.type in ("string", "bytes"):
        return field.default == "null"
    if field.is_struct:
        return field.default == "null"
    if field.type == "records":
        return True
    return not field.default


class MessageTables:
    """Programs, ops and fields of one message."""

    def __init__(self, message, names):
        self.m, self.names = message, names
        self.ops, self.programs, self.known = [], [], {}
        self.fields, self.first_field = [], {}
        for s in message.structs:
            self.first_field[s.name] = len(self.fields)
            self.fields += [(s, f) for f in s.fields]
        for _, f in self.fields:
            self.check(f)
        if len(self.fields) > 255:
            raise SchemaError(f"{message.name}: more than 255 fields")
        self.by_version = [self.program(message.structs[0], v) for v in range(message.versions[0], message.versions[1] + 1)]

    def check(self, field):
        """Defaults that the engine's tables cannot say."""
        if field.is_struct and field.nullable and not field.array and field.default is None:
            if not self.struct_is_zero(self.m.struct(field.type)):
                raise SchemaError(f"{self.m.name}.{field.name}: the default of a nullable struct must be null or zeros")
        if field.type == "float64" and field.default:
            raise SchemaError(f"{self.m.name}.{field.name}: a float64 has no default but 0")

    def struct_is_zero(self, struct):
        return all(self.field_is_zero(f) for f in struct.fields)

    def field_is_zero(self, field):
        if field.is_struct and not field.array and not field.nullable:
            return self.struct_is_zero(self.m.struct(field.type))
        return zero_default(field)

    def code(self, field, version=None):
        parts = ["KP_STRUCT" if field.is_struct else KINDS[field.type]]
        if field.array:
            parts.append("KP_ARRAY")
        if (field.nullable is not None) if version is None else covers(field.nullable, version):
            parts.append("KP_NULLABLE")
        if version is not None and version >= self.m.flexible and not field.oldform:
            parts.append("KP_COMPACT")
        if version is not None and field.tag is not None:
            parts.append("KP_IN_TAG")
        return " | ".join(parts)

    def min_size(self, field, version):
        compact = version >= self.m.flexible and not field.oldform
        if field.array or field.type in ("bytes", "records"):
            return 1 if compact else 4
        if field.type == "string":
            return 1 if compact else 2
        if field.is_struct:
            return 1 if covers(field.nullable, version) else self.programs[self.program(self.m.struct(field.type), version)]["min"]
        return FIXED[field.type]

    def op(self, struct, field, version):
        sub = self.program(self.m.struct(field.type), version) if field.is_struct and version is not None else 0
        index = self.first_field[struct.name] + struct.fields.index(field)
        code = self.code(field, version)
        where = f"offsetof(struct {struct_name(self.m, struct)}, {snake(field.name)})"
        return f"{{{code}, {index}, {where}, {sub}, {field.tag or 0}}}"

    def program(self, struct, version):
        plain, tagged, absent = [], [], []
        flexible = version >= self.m.flexible
        for f in struct.fields:
            here = covers(f.versions, version)
            if here and f.tag is None:
                plain.append(f)
            else:
                if here and flexible:
                    tagged.append(f)
                if not self.field_is_zero(f):
                    absent.append(f)
        tagged.sort(key=lambda f: f.tag)
        if len({f.tag for f in tagged}) != len(tagged):
            raise SchemaError(f"{self.m.name}.{struct.name}: a tag is used twice")
        if len(tagged) > 64:
            raise SchemaError(f"{self.m.name}.{struct.name}: more than 64 tagged fields")
        lines = [self.op(struct, f, version) for f in plain + tagged] + [self.op(struct, f, None) for f in absent]
        size = sum(self.min_size(f, version) for f in plain) + (1 if flexible else 0)
        key = (struct.name, flexible, len(plain), len(tagged), tuple(lines))
        if key not in self.known:
            if size == 0 and struct is not self.m.structs[0]:
                raise SchemaError(f"{self.m.name}.{struct.name}: takes no byte at version {version}")
            self.known[key] = len(self.programs)
            self.programs.append(
                {
                    "first": len(self.ops),
                    "plain": len(plain),
                    "tagged": len(tagged),
                    "inits": len(absent),
                    "flexible": int(flexible),
                    "type": self.m.structs.index(struct),
                    "min": max(size, 1),
                }
            )
            self.ops += lines
        return self.known[key]

    def field_row(self, struct, field):
        sub = self.m.structs.index(self.m.struct(field.type)) if field.is_struct else 0
        value = int(field.default) if field.default not in (None, "null") else 0
        text = "INT64_MIN" if value == -(2**63) else str(value)
        where = f"offsetof(struct {struct_name(self.m, struct)}, {snake(field.name)})"
        null = 1 if field.default == "null" else 0
        return f"{{{text}, {self.names.offset(field.name)}, {where}, {sub}, {self.code(field)}, {null}}}"

    def struct_row(self, struct):
        name = struct_name(self.m, struct)
        unknown = f"offsetof(struct {name}, unknown_tags)" if self.m.flexible != ANY else "KP_NO_UNKNOWN"
        return (
            f"{{{self.names.offset(struct.name)}, {self.first_field[struct.name]}, {len(struct.fields)}, "
            f"sizeof(struct {name}), {unknown}}}"
        )

    def text(self):
        m, base = self.m, self.m.c_name
        out = []

        def table(kind, suffix, rows):
            out.append(f"static const {kind} {base}_{suffix}[] = {{")
            out.extend(f"    {row}," for row in rows or ["{0}"])
            out.append("};")

        for _, f in self.fields:
            if f.is_struct and f.nullable and not f.array and f.default is None:
                out.append(f"_Static_assert(sizeof(struct {struct_name(m, m.struct(f.type))}) <= KP_ZEROS_BYTES, \"default\");")
        table("struct kp_op", "ops", self.ops)
        table(
            "struct kp_program",
            "programs",
            ["{%(first)d, %(plain)d, %(tagged)d, %(inits)d, %(flexible)d, %(type)d, %(min)d}" % p for p in self.programs],
        )
        table("struct kp_field", "fields", [self.field_row(s, f) for s, f in self.fields])
        table("struct kp_struct_type", "structs", [self.struct_row(s) for s in m.structs])
        table("uint16_t", "by_version", [str(p) for p in self.by_version])
        out += [
            f"const struct kp_message_type kp_{base}_type = {{",
            f'    .name = "{m.name}",',
            f"    .kind = KP_KIND_{m.kind.upper()},",
            f"    .key = {m.key},",
            f"    .min_version = {m.versions[0]},",
            f"    .max_version = {m.versions[1]},",
            f"    .flexible_from = {m.flexible},",
            f"    .size = sizeof(struct kp_{base}),",
            f"    .structs = {base}_structs,",
            f"    .fields = {base}_fields,",
            f"    .ops = {base}_ops,",
            f"    .programs = {base}_programs,",
            f"    .by_version = {base}_by_version,",
            "};",
            "",
        ]
        return "\n".join(out)


def tables_source(messages, names, what):
    out = [
        NOTE + f"// Codec tables of the {what}.",
        '#include "core/protocol/codec_table.h"',
        "",
    ]
    out += [f'#include "core/protocol/gen/{m.c_name}.h"' for m in messages]
    out.append("")
    out += [MessageTables(m, names).text() for m in messages]
    return "\n".join(out)


def lookup_source(messages, apis, names):
    """The blob of names, the API table and all lookups."""
    by_name = sorted(messages, key=lambda m: m.name)
    requests = {m.key: m for m in messages if m.kind == "request"}
    responses = {m.key: m for m in messages if m.kind == "response"}
    metadata = {m.key: m for m in messages if m.kind == "metadata"}

    def pointers(name, count, rows):
        lines = [f"const struct kp_message_type *const {name}[{count}] = {{"]
        lines += [f"    [{key}] = &kp_{m.c_name}_type," for key, m in sorted(rows.items())]
        return lines + ["};"]

    out = [
        NOTE + "// Names, the API table and the lists of message types.",
        '#include "core/protocol/codec_lookup.h"',
        '#include "core/protocol/codec_table.h"',
        '#include "core/protocol/gen/apis.h"',
        "",
    ]
    out += [f"extern const struct kp_message_type kp_{m.c_name}_type;" for m in by_name]
    out.append("\nconst char kp_names[] =")
    out += [f'    "{n}\\0"' for n in names.list]
    out += ["    ;", ""]
    out.append("const struct kp_message_type *const kp_message_types[] = {")
    out += [f"    &kp_{m.c_name}_type," for m in by_name]
    out += ["};", f"const unsigned kp_message_types_count = {len(by_name)};", ""]
    out += pointers("kp_message_requests", "KP_API_COUNT", requests)
    out += pointers("kp_message_responses", "KP_API_COUNT", responses)
    out += pointers("kp_message_metadata", max(metadata) + 1, metadata)
    out += [f"const unsigned kp_message_metadata_count = {max(metadata) + 1};", ""]
    out.append("const struct kp_api_info kp_apis[KP_API_COUNT] = {")
    for a in apis:
        if a.removed:
            out.append(f"    [{a.key}] = {{.name = NULL, .key = {a.key}, .max_version = -1, .max_stable = -1}},")
            continue
        listeners = " | ".join(f"KP_LISTENER_{name.upper()}" for name in a.listeners) or "0"
        out.append(
            f'    [{a.key}] = {{"{a.name}", {a.key}, {a.versions[0]}, {a.versions[1]}, {a.stable}, {a.flexible}, '
            f"{listeners}, {str(a.forwarded).lower()}, {str(a.cluster_action).lower()}}},"
        )
    out += ["};", ""]
    return "\n".join(out)


def errors_source(errors):
    first, last = errors[0][0], errors[-1][0]
    if [e[0] for e in errors] != list(range(first, last + 1)):
        raise SchemaError("errors.table: codes must be dense and in order")
    out = [
        NOTE + "// Names and texts of the protocol's error codes.",
        '#include "core/protocol/gen/errors.h"',
        "",
        "struct kafka_error_info {",
        '    const char *name; // as clients print it',
        "    const char *text; // default message",
        "    bool retriable;   // may be tried again",
        "};",
        "static const struct kafka_error_info infos[KAFKA_ERROR_MAX - KAFKA_ERROR_MIN + 1] = {",
    ]
    for code, name, retriable, text in errors:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        out.append(f'    {{"{name}", "{quoted}", {str(retriable).lower()}}},')
    out += [
        "};",
        "",
        "static const struct kafka_error_info *find(int code)",
        "{",
        "    return code < KAFKA_ERROR_MIN || code > KAFKA_ERROR_MAX ? NULL : &infos[code - KAFKA_ERROR_MIN];",
        "}",
        "",
        "const char *kafka_error_name(int code)",
        "{",
        "    const struct kafka_error_info *i = find(code);",
        '    return i ? i->name : "UNKNOWN";',
        "}",
        "",
        "const char *kafka_error_text(int code)",
        "{",
        "    const struct kafka_error_info *i = find(code);",
        '    return i ? i->text : "unknown error code";',
        "}",
        "",
        "bool kafka_error_is_retriable(int code)",
        "{",
        "    const struct kafka_error_info *i = find(code);",
        "    return i && i->retriable;",
        "}",
        "",
        "bool kafka_error_by_name(struct slice name, enum kafka_error *out)",
        "{",
        "    for (int code = KAFKA_ERROR_MIN; code <= KAFKA_ERROR_MAX; code++)",
        "        if (slice_equal_str(name, infos[code - KAFKA_ERROR_MIN].name)) {",
        "            *out = (enum kafka_error)code;",
        "            return true;",
        "        }",
        "    return false;",
        "}",
    ]
    return "\n".join(out) + "\n"
