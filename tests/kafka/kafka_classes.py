"""Kafka's own classes of messages in a JVM of one release, which writes one message after the other."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from attrs import frozen

from tests.kafka import jars
from tests.kafka.definitions import Json, clients_jar, read_definition
from tests.kafka.generate_messages import module_name
from transport.kafka.schema import NEVER, Entity, Kind, Message, Versions, fields_of, parse_versions
from transport.zookeeper_server import find_java

_PROGRAM: Final = Path(__file__).with_name("WriteMessages.java")
_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


@frozen
class KafkaClasses:
    """The classes of messages of one release."""

    release: str
    _process: subprocess.Popen[str]

    def versions_of(self, kind: type[Message]) -> Versions:
        """Return the versions of a message that the release has."""
        definition = _definition(self.release, kind.__name__)
        return NEVER if definition is None else parse_versions(definition["validVersions"])

    def write(self, message: Message, version: int) -> bytes:
        """Return the bytes of a message in a version that the release has."""
        kind = type(message)
        fields = _as_json(message, _names(self.release, kind.__name__), version)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind.__name__} {version} {json.dumps(fields)}\n")
        self._process.stdin.flush()
        written = self._process.stdout.readline()
        assert written, f"the JVM of {self.release} has ended with {kind.__name__} of version {version}"
        return b64decode(written)


@contextmanager
def kafka_classes(release: str) -> Iterator[KafkaClasses]:
    """Run a JVM with the classes of a release until the end of the block. Java compiles the program: it needs a JDK."""
    command = [find_java(), *_OPTIONS, "-cp", f"{jars.folder(release)}/*", str(_PROGRAM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            yield KafkaClasses(release, process)
        finally:
            process.kill()


@cache
def _definition(release: str, message: str) -> Json | None:
    with ZipFile(clients_jar(release)) as jar:
        return read_definition(jar, message)


@cache
def _names(release: str, message: str) -> dict[str, str]:
    """Return the names of a message's fields in Kafka's JSON by those of ours."""
    definition = _definition(release, message)
    assert definition is not None
    names = set(_all_names([*definition["fields"], *definition.get("commonStructs", ())]))
    ours = {module_name(name): name[0].lower() + name[1:] for name in names}
    assert len(ours) == len(names), f"two fields of {message} have one name"
    return ours


def _all_names(fields: list[Json]) -> Iterator[str]:
    for field in fields:
        yield field["name"]
        yield from _all_names(field.get("fields", []))


def _as_json(entity: Entity, names: dict[str, str], version: int) -> Json:
    present = [field for field in fields_of(type(entity)) if version in field.at.versions]
    return {names[field.name]: _value(getattr(entity, field.name), field.type, names, version) for field in present}


def _value(value: Any, kind: Kind | type[Entity], names: dict[str, str], version: int) -> Any:
    if isinstance(value, tuple):
        return [_value(one, kind, names, version) for one in value]
    if isinstance(value, Entity):
        return _as_json(value, names, version)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return _NO_ID if kind is Kind.UUID and value == "" else value
