"""The codec writes what kio writes, byte for byte, and reads what kio reads, in every version up to those of 3.9.

This needs no JVM; `test_against_kafka.py` compares all versions with Kafka's own classes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib
import random
import uuid
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import kio.schema
import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from tests.kafka.generate_messages import module_name
from tests.kafka.random_messages import VERSIONS, name_of, random_entity
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.codec import decode, encode
from transport.kafka.primitives import pack_uuid
from transport.kafka.schema import Entity, Kind, Message, fields_of

_MESSAGES_EACH = 20
_SCHEMA = Path(kio.schema.__path__[0])

NEWER = {
    "AlterPartitionReassignments": {1},
    "ApiVersions": {5},
    "DescribeCluster": {2},
    "DescribeLogDirs": {5},
    "DescribeShareGroupOffsets": {0, 1},
    "ListConfigResources": {0, 1},
    "ListOffsets": {10, 11},
    "ListTransactions": {2},
    "Metadata": {13},
    "OffsetFetch": {10},
    "UpdateFeatures": {2},
}
"""The versions that are newer than kio."""


def api_of(kind: type[Message]) -> str:
    """Return the name of a message's api."""
    return KAFKA_APIS[kind.api_key].name


def kio_module(kind: type[Message], version: int) -> str:
    """Return the name of kio's module for a version of a message."""
    return f"{module_name(api_of(kind))}.v{version}.{kind.__name__.removeprefix(api_of(kind)).lower()}"


def has_module(kind: type[Message], version: int) -> bool:
    """Return whether kio has a version of a message."""
    return (_SCHEMA / kio_module(kind, version).replace(".", "/")).with_suffix(".py").exists()


IN_KIO = [(kind, version) for kind, version in VERSIONS if has_module(kind, version)]


def kio_class(kind: type[Message], version: int) -> type[Any]:
    """Return kio's class for a version of a message."""
    cls: type[Any] = getattr(importlib.import_module(f"kio.schema.{kio_module(kind, version)}"), kind.__name__)
    return cls


def as_kio(entity: Entity, cls: type[Any], version: int) -> Any:
    """Convert an entity to kio's class, whose fields are in the same order."""
    hints = get_type_hints(cls)
    present = [field for field in fields_of(type(entity)) if version in field.at.versions]
    values = {}
    for theirs, ours in zip(dataclasses.fields(cls), present, strict=True):
        value = getattr(entity, ours.name)
        values[theirs.name] = _value_as_kio(value, hints[theirs.name], ours.type, version)
    return cls(**values)


def _value_as_kio(value: Any, hint: Any, kind: Kind | type[Entity], version: int) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        [item] = [get_args(option)[0] for option in _options(hint) if get_origin(option) is tuple]
        return tuple(_value_as_kio(one, item, kind, version) for one in value)
    if isinstance(value, Entity):
        [cls] = [option for option in _options(hint) if option is not type(None)]
        return as_kio(value, cls, version)
    if kind is Kind.UUID:
        data = pack_uuid(value)
        return uuid.UUID(bytes=data) if any(data) else None
    if any(isinstance(option, type) and issubclass(option, dt.timedelta) for option in _options(hint)):
        return dt.timedelta(milliseconds=value)
    return ErrorCode(value) if hint is ErrorCode else value


def _options(hint: Any) -> tuple[Any, ...]:
    return (
        get_args(hint) if isinstance(hint, UnionType) or (get_origin(hint) is not tuple and get_args(hint)) else (hint,)
    )


def test_kio_has_all_but_the_newest_versions() -> None:
    newer: defaultdict[str, set[int]] = defaultdict(set)
    for kind, version in VERSIONS:
        if (kind, version) not in IN_KIO:
            newer[api_of(kind)].add(version)
    assert newer == NEWER


@pytest.mark.parametrize(("kind", "version"), IN_KIO, ids=name_of)
def test_bytes_are_those_of_kio(kind: type[Message], version: int) -> None:
    rng = random.Random(f"{kind.__name__} {version}")
    cls = kio_class(kind, version)
    for _ in range(_MESSAGES_EACH):
        message = random_entity(rng, kind, version)
        buffer = BytesIO()
        theirs = as_kio(message, cls, version)
        entity_writer(cls)(buffer, theirs)
        body = encode(message, version)
        assert body == buffer.getvalue()
        assert decode(kind, version, body) == message
        assert entity_reader(cls)(body, 0) == (theirs, len(body))
