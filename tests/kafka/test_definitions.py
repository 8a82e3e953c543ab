"""The definition of a message for the versions of two releases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kafka.definitions import Json, united


def message(versions: str, *fields: Json, **more: Any) -> Json:
    return {"name": "M", "validVersions": versions, "flexibleVersions": "2+", "fields": list(fields), **more}


def field(name: str, versions: str, **more: Any) -> Json:
    return {"name": name, "type": "int32", "versions": versions, **more}


def ranges(fields: list[Json]) -> list[tuple[str, str]]:
    return [(each["name"], each["versions"]) for each in fields]


def test_a_message_of_one_release_is_taken_as_it_is() -> None:
    only = message("0-3", field("A", "0+"))
    assert united(only, None) is united(None, only) is only


def test_versions_that_one_release_has_are_all_there() -> None:
    assert united(message("1-5"), message("0-4"))["validVersions"] == "0-5"
    assert united(message("0"), message("0"))["validVersions"] == "0"


def test_releases_that_leave_out_a_version_between_them_are_refused() -> None:
    with pytest.raises(AssertionError, match="is not one range"):
        united(message("3-5"), message("0-1"))


def test_a_field_of_dropped_versions_keeps_its_place() -> None:
    newer = message("2-4", field("B", "0+"), field("D", "3+"))
    older = message("0-2", field("A", "0-1"), field("B", "0+"), field("C", "1"), field("D", "3+"))
    fields = united(newer, older)["fields"]
    assert ranges(fields) == [("A", "0-1"), ("B", "0+"), ("C", "1"), ("D", "3+")]


def test_the_newer_release_decides_in_each_version_that_it_has() -> None:
    newer = message("1-3", field("A", "1-2", nullableVersions="2+"), field("New", "0+"))
    older = message("0-2", field("A", "0+", nullableVersions="1+"), field("Old", "0+"))
    a, old, new = united(newer, older)["fields"]
    assert (a["versions"], a["nullableVersions"]) == ("0-2", "2+")
    assert (old["name"], old["versions"]) == ("Old", "0")
    assert (new["name"], new["versions"]) == ("New", "1+")


def test_fields_within_fields_and_common_structs_are_united_too() -> None:
    def nested(*fields: Json) -> Json:
        return field("Rows", "0+", type="[]Row", fields=list(fields))

    newer = message("1-2", nested(field("A", "0+"), field("New", "2+")), commonStructs=[field("S", "0+", fields=[])])
    old_struct = field("S", "0+", fields=[field("Gone", "0")])
    older = message("0-1", nested(field("A", "0+"), field("Old", "0")), commonStructs=[old_struct])
    both = united(newer, older)
    assert ranges(both["fields"][0]["fields"]) == [("A", "0+"), ("Old", "0"), ("New", "2+")]
    assert ranges(both["commonStructs"][0]["fields"]) == [("Gone", "0")]
