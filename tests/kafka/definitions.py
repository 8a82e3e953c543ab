"""The definitions of Kafka's messages in kafka-clients jars, and the union of those of two releases.

Releases drop old versions of messages, and whole apis: 4.x has none of ZooKeeper mode. `united` takes each version from
the newest release that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from attrs import frozen

from tests.kafka import jars
from transport.kafka.schema import NEVER, Versions, parse_versions

Json = dict[str, Any]

_NONE: Final = "none"
_RANGES: Final = ("versions", "nullableVersions", "taggedVersions")
_NOTHING: Final[Json] = {}


def clients_jar(release: str) -> Path:
    """Return the jar of a release that has the definitions, whether it is there or not."""
    return jars.folder(release) / f"kafka-clients-{release}.jar"


def read_definition(jar: ZipFile, message: str) -> Json | None:
    """Read the definition of a message, such as MetadataRequest; None if the release has no version of it."""
    path = f"common/message/{message}.json"
    if path not in jar.namelist():
        return None
    # Its JSON has comments.
    definition: Json = json.loads(re.sub(r"^\s*//.*$", "", jar.read(path).decode(), flags=re.MULTILINE))
    return None if definition["validVersions"] == _NONE else definition


def united(newer: Json | None, older: Json | None) -> Json:
    """Return the definition of a message for all versions that one of two releases has."""
    if newer is None or older is None:
        only = newer or older
        assert only is not None, "neither release has the message"
        return only
    union = _Union(parse_versions(newer["validVersions"]), parse_versions(older["validVersions"]))
    return {
        **newer,
        "validVersions": union.valid,
        "flexibleVersions": union.range_of(newer["flexibleVersions"], older["flexibleVersions"]),
        "commonStructs": union.fields(newer.get("commonStructs", ()), older.get("commonStructs", ())),
        "fields": union.fields(newer["fields"], older["fields"]),
    }


@frozen
class _Union:
    """The versions of a message in two releases."""

    newer: Versions
    older: Versions

    @property
    def valid(self) -> str:
        """The versions that one of the releases has."""
        return _text(_span({*_numbers(self.newer), *_numbers(self.older)}))

    def range_of(self, newer: str, older: str) -> str:
        """Return a range of versions, for which the newer release decides in each version that it has."""
        if newer == older:
            return newer
        old = set(_numbers(self.older)) - set(_numbers(self.newer))
        kept = [number for number in old if number in parse_versions(older)]
        found = _span({*kept, *(number for number in _numbers(self.newer) if number in parse_versions(newer))})
        is_open = found != NEVER and found.last == max(self.newer.last, self.older.last)
        return f"{found.first}+" if is_open else _text(found)

    def fields(self, newer: Sequence[Json], older: Sequence[Json]) -> list[Json]:
        """Return the fields of both releases. One that only the older release has keeps its place among the others."""
        before = {field["name"]: field for field in older}
        united_fields = [self._field(field, before.get(field["name"], _NOTHING)) for field in newer]
        previous = None
        for field in older:
            names = [each["name"] for each in united_fields]
            if field["name"] not in names:
                united_fields.insert(0 if previous is None else names.index(previous) + 1, self._field(_NOTHING, field))
            previous = field["name"]
        return [field for field in united_fields if field["versions"] != _NONE]

    def _field(self, newer: Json, older: Json) -> Json:
        # All but its versions is as in the newer release, if that has the field.
        field = dict(newer or older)
        for key in _RANGES:
            text = self.range_of(newer.get(key, _NONE), older.get(key, _NONE))
            field.pop(key, None)
            if text != _NONE or key == "versions":
                field[key] = text
        if "fields" in field:
            field["fields"] = self.fields(newer.get("fields", ()), older.get("fields", ()))
        return field


def _span(numbers: set[int]) -> Versions:
    if not numbers:
        return NEVER
    first, last = min(numbers), max(numbers)
    assert numbers == set(range(first, last + 1)), f"{sorted(numbers)} is not one range"
    return Versions(first, last)


def _text(span: Versions) -> str:
    if span == NEVER:
        return _NONE
    return f"{span.first}-{span.last}" if span.first < span.last else str(span.first)


def _numbers(versions: Versions) -> range:
    return range(versions.first, versions.last + 1)
