#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the C headers and tables of core/protocol/gen from the schema files.

Usage: generate.py --list SCHEMA...            print the names of all outputs, one a line
       generate.py --out DIR SCHEMA...         write them
SCHEMA are the .schema files and one errors.table.
"""

import argparse
import sys
from pathlib import Path

import headers
import schema
import tables

SOURCES = ("requests", "responses", "metadata", "coordinators", "others")


def group(message):
    if message.kind in ("request", "response"):
        return message.kind + "s"
    if message.kind in ("group", "transaction", "share"):
        return "coordinators"
    return "metadata" if message.kind == "metadata" else "others"


def outputs(messages):
    names = [f"{m.c_name}.h" for m in messages]
    names += ["apis.h", "errors.h", "metadata_records.h"]
    names += [f"tables_{s}.c" for s in SOURCES]
    return names + ["errors.c", "lookup.c"]


def texts(messages, apis, errors):
    names = tables.Names()
    out = {f"{m.c_name}.h": headers.message_header(m) for m in messages}
    out["apis.h"] = headers.apis_header(apis)
    out["errors.h"] = headers.errors_header(errors)
    out["metadata_records.h"] = headers.metadata_header(messages)
    for source in SOURCES:
        chosen = [m for m in messages if group(m) == source]
        out[f"tables_{source}.c"] = tables.tables_source(chosen, names, source)
    out["errors.c"] = tables.errors_source(errors)
    out["lookup.c"] = tables.lookup_source(messages, apis, names)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    try:
        messages, apis = schema.load([f for f in args.files if f.endswith(".schema")])
        if args.list:
            print("\n".join(outputs(messages)))
            return 0
        errors = schema.parse_errors(next(f for f in args.files if f.endswith(".table")))
        for name, text in texts(messages, apis, errors).items():
            (Path(args.out) / name).write_text(text)
    except schema.SchemaError as e:
        print(f"generate: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
