"""The JSON Schema of scenarios, for editors: `python -m simulator.scenario.schema` writes `schema.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import orjson

from simulator.scenario.language import TOP_KEYS
from simulator.scenario.shapes import Schema, object_schema

PATH: Final = Path(__file__).with_name("schema.json")


def schema() -> Schema:
    """Return the schema of a scenario's file, as `language` has it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of klamm simulate",
        **object_schema(TOP_KEYS),
    }


def text() -> bytes:
    """Return what stands in `schema.json`."""
    return orjson.dumps(schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    PATH.write_bytes(text())
