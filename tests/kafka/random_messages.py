"""Random messages of every kind and version, drawn from the tables of the messages themselves."""

from __future__ import annotations

import random
import string
from base64 import urlsafe_b64encode
from typing import Any, Final

from transport.errors import ErrorCode
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.schema import Entity, EntityField, Kind, Message, fields_of

_BITS: Final = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
_CHANCE_OF_DEFAULT: Final = 0.2
_CHANCE_OF_NULL: Final = 0.2

KINDS: Final[tuple[type[Message], ...]] = tuple(
    kind for api in KAFKA_APIS.values() for kind in (api.request, api.response)
)
VERSIONS: Final = [(kind, version) for kind in KINDS for version in range(kind.versions.first, kind.versions.last + 1)]


def name_of(case: object) -> str:
    """Return the name of a kind or a version in the id of a test."""
    return case.__name__ if isinstance(case, type) else f"v{case}"


def random_entity(rng: random.Random, entity: type[Entity], version: int) -> Any:
    """Draw an entity that a version can express in full."""
    present = [field for field in fields_of(entity) if version in field.at.versions]
    return entity(**{field.name: _random_field(rng, field, version) for field in present})


def _random_field(rng: random.Random, field: EntityField, version: int) -> Any:
    if rng.random() < _CHANCE_OF_DEFAULT and (field.default is not None or version in field.at.nullable):
        return field.default
    if version in field.at.nullable and rng.random() < _CHANCE_OF_NULL:
        return None
    if field.name == "error_code":
        return rng.choice(list(ErrorCode)).value
    if field.name.endswith("_ms"):
        return rng.randrange(1 << 31)
    if field.is_array:
        length = rng.choice((0, 1, 2, 3, 200 if isinstance(field.type, Kind) else 4))
        return tuple(_random_value(rng, field.type, version) for _ in range(length))
    return _random_value(rng, field.type, version)


def _random_value(rng: random.Random, kind: Kind | type[Entity], version: int) -> Any:
    match kind:
        case Kind.BOOL:
            return rng.random() < 0.5
        case Kind.UINT16:
            return rng.randrange(1 << 16)
        case Kind.FLOAT64:
            return rng.uniform(-1e9, 1e9)
        case Kind.STRING:
            return "".join(rng.choices(string.printable + "äß漢🐪", k=rng.choice((0, 1, 20, 127, 128, 300))))
        case Kind.BYTES:
            return rng.randbytes(rng.choice((0, 1, 126, 127, 128)))
        case Kind.UUID:
            return urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
        case Kind():
            half = 1 << (_BITS[kind] - 1)
            return rng.choice((rng.randrange(-half, half), rng.randrange(-1, 10), half - 1, -half))
    return random_entity(rng, kind, version)
