#!/usr/bin/env python3
"""schema.py SCHEMA STUDY.json...: the documents follow the schema, and the schema notices what does not.

Exit code 77: jsonschema is not installed.
"""
import copy
import json
import sys

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python package jsonschema is not installed (Debian: python3-jsonschema)")
    sys.exit(77)

with open(sys.argv[1]) as file:
    schema = json.load(file)
Validator = jsonschema.Draft202012Validator
Validator.check_schema(schema)
validator = Validator(schema)


def failures(document):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(document)]


def objects(node, name):
    """The schemas of objects, with a name."""
    if node.get("type") == "object":
        yield name, node
    for key, inner in node.get("$defs", {}).items():
        yield from objects(inner, key)


EVERY = (lambda d: d.update(colour=1), lambda d: d.update(schema_version=2))
CHANGES = {
    "study.schema.json": EVERY + (
        lambda d: d.pop("series"),
        lambda d: d["model"].update(name=3),
        lambda d: d["machine"]["before"].pop("steal"),
    ),
    "experiment.schema.json": EVERY + (
        lambda d: d.pop("tables"),
        lambda d: d["tables"][0]["columns"][0].update(unit="furlongs"),
        lambda d: d["tables"][0]["rows"][0][0].pop("estimated"),
        lambda d: d["devices"][0].update(name=3),
    ),
}

status = 0
for path in sys.argv[2:]:
    with open(path) as file:
        document = json.load(file)
    for failure in failures(document)[:10]:
        print(f"{path}: {failure}")
        status = 1
    # The schema must not let everything pass.
    for change in CHANGES[document["schema"]]:
        changed = copy.deepcopy(document)
        change(changed)
        if not failures(changed):
            print(f"{path}: the schema accepts a document without, or with too many, fields")
            status = 1
for name, node in objects(schema, "the document"):
    if set(node["properties"]) != set(node["required"]) or node.get("additionalProperties") is not False:
        print(f"schema: {name}: every field must be required, and no others allowed")
        status = 1
    for field, inner in node["properties"].items():
        if "description" not in inner:
            print(f"schema: {name}.{field} has no description")
            status = 1
sys.exit(status)
