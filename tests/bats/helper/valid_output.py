"""Fails unless each line of stdin is JSON of the shape that docs/output.schema.json describes, and
there is one."""
import json
import pathlib
import sys

import jsonschema

schema = json.loads((pathlib.Path(__file__).parents[3] / "docs/output.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)


def part_for(output):
    """That of the alternatives which is meant: of `oneOf` a validator can only say that none
    fits."""
    for part in "event", "settings":
        if part in output:
            return part
    if "level" in output:
        return "message"
    return {"status": "status", "doctor": "diagnosis"}.get(output.get("command"), "result")


lines = sys.stdin.read().splitlines()
if not lines:
    sys.exit("nothing to check")
bad = False
for line in lines:
    output = json.loads(line)
    if jsonschema.Draft202012Validator(schema).is_valid(output):
        continue
    bad = True
    part = {"$ref": f"#/$defs/{part_for(output)}", "$defs": schema["$defs"]}
    for error in jsonschema.Draft202012Validator(part).iter_errors(output):
        print(f"{line}\n  {jsonschema.exceptions.best_match([error]).message}", file=sys.stderr)
sys.exit(1 if bad else 0)
