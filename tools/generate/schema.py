# SPDX-License-Identifier: Apache-2.0
"""Reads the schema language of core/protocol/schema (described in its README) into plain objects."""

import re
from pathlib import Path

ANY = 32767  # upper end of an open version range
SCALARS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes", "records")


class SchemaError(Exception):
    """A schema file says something that the language does not have; the text names file and line."""


class Field:
    """One field of a struct: name, type, versions, nullable versions, default, tag, comment."""

    def __init__(self, name):
        self.name = name
        self.type = None  # one of SCALARS, or the name of a struct
        self.array = False
        self.versions = None  # (first, last)
        self.nullable = None  # (first, last) or None
        self.default = None  # None: zero, empty; "null"; else an int, float or bool
        self.tag = None
        self.oldform = False  # never compact, also in flexible versions
        self.comment = ""

    @property
    def is_struct(self):
        return self.type not in SCALARS


class Struct:
    """A run of fields; struct 0 of a message is the message itself."""

    def __init__(self, name):
        self.name = name
        self.fields = []


class Message:
    """One message: what is encoded and decoded as a whole."""

    def __init__(self, name, kind, key, versions, flexible, comment):
        self.name = name  # as in the reference, e.g. ProduceRequestData
        self.kind = kind  # request, response, metadata, group, transaction, share, remote, data
        self.key = key  # API key, record type; -1 where there is none
        self.versions = versions
        self.flexible = flexible  # first flexible version; ANY for never
        self.comment = comment
        self.structs = [Struct(name)]

    @property
    def c_name(self):
        return snake(self.name[:-4] if self.name.endswith("Data") else self.name)

    def struct(self, name):
        for s in self.structs[1:]:
            if s.name == name:
                return s
        return None


class Api:
    """One row of the API table."""

    def __init__(self, name, key):
        self.name, self.key = name, key
        self.removed = False
        self.versions = (0, -1)
        self.stable = -1
        self.flexible = ANY
        self.listeners = []
        self.forwarded = False
        self.cluster_action = False


def snake(name):
    name = name.replace("KRaft", "Kraft").replace("kRaft", "kraft")
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return name.lower()


def parse_range(text):
    """'3+' -> (3, ANY), '3-7' -> (3, 7), '3' -> (3, 3)."""
    m = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
    if not m:
        return None
    first = int(m.group(1))
    if m.group(2) is None:
        return first, first
    return first, ANY if m.group(2) == "+" else int(m.group(3))


def parse_default(text):
    if text == "null":
        return "null"
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text)


def parse_field(line, where):
    text, _, comment = line.partition("#")
    words = text.split()
    if len(words) < 2:
        raise SchemaError(f"{where}: a field is a name and a type")
    f = Field(words[0])
    f.comment = comment.strip()
    m = re.fullmatch(r"(\[\])?([A-Za-z0-9]+)(\?([0-9+-]*))?", words[1])
    if not m:
        raise SchemaError(f"{where}: bad type {words[1]}")
    f.array, f.type = bool(m.group(1)), m.group(2)
    if m.group(3):
        f.nullable = parse_range(m.group(4)) if m.group(4) else (0, ANY)
    rest = words[2:]
    f.versions = (0, ANY)
    while rest:
        word = rest.pop(0)
        if word == "=":
            f.default = parse_default(rest.pop(0))
        elif word == "tag":
            f.tag = int(rest.pop(0))
        elif word == "oldform":
            f.oldform = True
        elif parse_range(word):
            f.versions = parse_range(word)
        else:
            raise SchemaError(f"{where}: unknown word {word}")
    return f


def parse_head(words, where):
    """Words after the name of an `api`, `metadata`, `group`, `data` or such line."""
    head = {"key": -1, "versions": None, "flexible": ANY, "listeners": [], "stable": None}
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("removed", "forwarded", "cluster-action"):
            head[word] = True
        elif word == "listeners":
            while words and words[0] in ("broker", "controller"):
                head["listeners"].append(words.pop(0))
        elif word in ("key", "stable"):
            head[word] = int(words.pop(0))
        elif word == "versions":
            head["versions"] = parse_range(words.pop(0))
        elif word == "flexible":
            head["flexible"] = parse_range(words.pop(0))[0]
        else:
            raise SchemaError(f"{where}: unknown word {word}")
    return head


class File:
    """Reads one schema file; what it declares is in `messages` and `apis`."""

    def __init__(self, path):
        self.path = Path(path)
        self.messages, self.apis = [], []
        self.message = None  # being filled
        self.stack = []  # (indent, struct) from outer to inner
        self.last = None  # last field, whose struct an indented line opens
        self.comment = []  # comment lines since the last blank line
        self.purpose = None  # first block of comments: what the file is about
        self.api_head = None
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            self.line(line, f"{path}:{number}")

    def line(self, line, where):
        if not line.strip():
            text = self.take_comment()
            self.purpose = text if self.purpose is None else self.purpose
            return
        if line.lstrip().startswith("#"):
            self.comment.append(line.strip("# "))
            return
        if line[0] != " ":
            self.declaration(line.split(), where)
            return
        self.field(line, where)

    def take_comment(self):
        text = " ".join(c for c in self.comment if not c.startswith("SPDX"))
        self.comment = []
        return text

    def declaration(self, words, where):
        kind = words[0]
        if kind == "api":
            head = parse_head(words[2:], where)
            api = Api(words[1], head["key"])
            api.removed = "removed" in head
            if not api.removed:
                api.versions = head["versions"]
                api.stable = api.versions[1] if head["stable"] is None else head["stable"]
                api.flexible, api.listeners = head["flexible"], head["listeners"]
            api.forwarded, api.cluster_action = "forwarded" in head, "cluster-action" in head
            self.apis.append(api)
            self.api_head = (words[1], head, self.take_comment() or self.purpose)
        elif kind in ("request", "response"):
            name, head, comment = self.api_head
            self.open(Message(name + kind.title() + "Data", kind, head["key"], head["versions"], head["flexible"], comment))
        elif kind in ("metadata", "group", "transaction", "share", "remote", "data"):
            head = parse_head(words[2:], where)
            self.open(Message(words[1], kind, head["key"], head["versions"], head["flexible"], self.take_comment() or self.purpose))
        else:
            raise SchemaError(f"{where}: unknown declaration {kind}")

    def open(self, message):
        self.message = message
        self.messages.append(message)
        self.stack = [(4, message.structs[0])]
        self.last = None
        self.comment = []

    def field(self, line, where):
        indent = len(line) - len(line.lstrip())
        if self.message is None:
            raise SchemaError(f"{where}: a field outside a message")
        if indent > self.stack[-1][0]:
            if self.last is None or not self.last.is_struct or self.message.struct(self.last.type):
                raise SchemaError(f"{where}: these fields belong to no struct")
            struct = Struct(self.last.type)
            self.message.structs.append(struct)
            self.stack.append((indent, struct))
        while indent < self.stack[-1][0]:
            self.stack.pop()
        if indent != self.stack[-1][0]:
            raise SchemaError(f"{where}: indentation fits no struct")
        self.last = parse_field(line, where)
        self.stack[-1][1].fields.append(self.last)


def parse_errors(path):
    """errors.table -> list of (code, name, retriable, text)."""
    rows = []
    for line in Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            code, name, retriable, text = line.split(None, 3)
            rows.append((int(code), name, retriable == "retriable", text))
    return rows


def load(paths):
    """All messages and APIs of the files, checked: names are single, structs are known."""
    messages, apis = [], []
    for path in paths:
        f = File(path)
        messages += f.messages
        apis += f.apis
    seen = set()
    for m in messages:
        if m.c_name in seen:
            raise SchemaError(f"{m.name}: declared twice")
        seen.add(m.c_name)
        for s in m.structs:
            for f in s.fields:
                if f.is_struct and not m.struct(f.type):
                    raise SchemaError(f"{m.name}.{f.name}: unknown type {f.type}")
    return messages, sorted(apis, key=lambda a: a.key)
