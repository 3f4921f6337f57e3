"""The JSON schema of a config file, for editors. `config/schema.json` holds it; a test fails when the two drift apart.

Write it anew with `python -c "import overread.config as c; print(c.json_schema(), end='')" > config/schema.json`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from overread.config.study import Config


def json_schema() -> str:
    """The schema of a file as it is written: with `extends` and `sweep` in a setting, and without what is filled in."""
    schema = Config.model_json_schema()
    for key in Config.filled_in:
        del schema["properties"][key]
    setting = schema["$defs"]["Setting"]["properties"]
    setting["extends"] = {"type": "string", "description": "another setting, whose fields this one takes"}
    setting["sweep"] = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": {"enum": sorted(set(setting) - {"extends"})},
        "additionalProperties": {"type": "array", "minItems": 1},
        "description": "a key and a list of values: one setting for each, named <setting>-<value>; "
        "from-0..62 stands for from-0 to from-62",
    }
    schema["$defs"] = _used(schema)
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def _used(schema: dict[str, Any]) -> dict[str, Any]:
    """The definitions that the schema still refers to, directly or through one another."""
    used: set[str] = set()
    text = json.dumps({**schema, "$defs": {}})
    while more := set(re.findall(r"#/\$defs/(\w+)", text)) - used:
        used |= more
        text = json.dumps([schema["$defs"][name] for name in sorted(more)])
    return {name: schema["$defs"][name] for name in sorted(used)}
