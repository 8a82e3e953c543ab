"""The JSON Schema of scenarios, for editors: `klamm simulate --schema` prints it."""

from __future__ import annotations

from simulator.scenario.language import TOP_KEYS
from simulator.scenario.shapes import Schema, object_schema


def schema() -> Schema:
    """Return the schema of a scenario's file, as `language` defines it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of klamm simulate",
        **object_schema(TOP_KEYS),
    }
