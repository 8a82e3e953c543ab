"""Generates transport/kafka/messages from the definitions in a kafka-clients jar.

`python -m tests.kafka.generate_messages kafka-clients-3.9.1.jar` rewrites the package. The definitions of 3.9 cover all
older versions of the apis of ZooKeeper mode; those of 4.x lack them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from attrs import frozen

APIS: Final = (
    "AllocateProducerIds",
    "AlterConfigs",
    "AlterPartition",
    "AlterPartitionReassignments",
    "AlterReplicaLogDirs",
    "AlterUserScramCredentials",
    "ApiVersions",
    "ControlledShutdown",
    "CreatePartitions",
    "CreateTopics",
    "DeleteTopics",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeLogDirs",
    "DescribeQuorum",
    "DescribeTopicPartitions",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "LeaderAndIsr",
    "ListGroups",
    "ListPartitionReassignments",
    "ListTransactions",
    "Metadata",
    "SaslAuthenticate",
    "SaslHandshake",
    "StopReplica",
    "UpdateFeatures",
    "UpdateMetadata",
)
MESSAGES: Final = tuple(f"{api}{direction}" for api in APIS for direction in ("Request", "Response"))

PACKAGE: Final = Path(__file__).parents[2] / "transport/kafka/messages"
NOTICE: Final = """\
The modules of this package are derived by tests/kafka/generate_messages.py from the message definitions of
Apache Kafka 3.9 (names, types and versions of fields), which are

Copyright The Apache Software Foundation

and licensed to you under the Apache License, Version 2.0: http://www.apache.org/licenses/LICENSE-2.0

Apache Kafka's NOTICE says:

"""
_DEFAULTS: Final = {"bool": "False", "string": '""', "bytes": 'b""', "uuid": '""', "float64": "0.0"}
_TYPES: Final = {"bool": "bool", "string": "str", "bytes": "bytes", "uuid": "str", "float64": "float"}
_PRIMITIVES: Final = ("bool", "int8", "int16", "uint16", "int32", "int64", "float64", "string", "bytes", "uuid")


def module_name(name: str) -> str:
    """Return the name of a module or a field for a name of Kafka's, such as `isKRaftController`."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft"))
    return spaced.lower()


@frozen
class Definition:
    """A message definition of Kafka's."""

    json: dict[str, Any]

    @classmethod
    def read(cls, jar: ZipFile, name: str) -> Definition:
        """Read a definition, whose JSON has comments."""
        text = jar.read(f"common/message/{name}.json").decode()
        return cls(json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)))

    @property
    def name(self) -> str:
        """The name of the message, such as LeaderAndIsrRequest."""
        name: str = self.json["name"]
        return name

    def module(self) -> str:
        """Return the source of the module."""
        entities = [*self.json.get("commonStructs", ()), *_nested(self.json["fields"])]
        classes = [_class(entity["name"], "Entity", entity["fields"]) for entity in entities]
        classes.append(_class(self.name, "Message", self.json["fields"], self._constants()))
        title = f'"""{self.name} in versions {self.json["validVersions"]}."""'
        return "\n".join([title, "", *self._imports("".join(classes)), *classes])

    def _constants(self) -> str:
        # 3.9 marks versions as unstable that no broker offers by default.
        key, valid, flexible = (self.json[k] for k in ("apiKey", "validVersions", "flexibleVersions"))
        return (
            f"    api_key = {key}\n"
            f'    versions = parse_versions("{valid}")\n'
            f'    flexible = parse_versions("{flexible}")\n\n'
        )

    def _imports(self, source: str) -> Iterator[str]:
        yield "from typing import Annotated"
        yield ""
        kinds = [kind.upper() for kind in _PRIMITIVES if f" {kind.upper()}," in source]
        entity = ["Entity"] if "(Entity," in source else []
        yield f"from transport.kafka.schema import {', '.join([*kinds, 'At', *entity, 'Message', 'parse_versions'])}"


def _nested(fields: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the entities that fields declare, innermost first."""
    for field in fields:
        if "fields" in field:
            yield from _nested(field["fields"])
            yield {"name": field["type"].removeprefix("[]"), "fields": field["fields"]}


def _class(name: str, base: str, fields: list[dict[str, Any]], constants: str = "") -> str:
    lines = [_field(field) for field in fields]
    body = constants + "".join(lines) or "    pass\n"
    return f"\n\nclass {name}({base}, frozen=True):\n{body}"


def _field(field: dict[str, Any]) -> str:
    kind = field["type"].removeprefix("[]")
    is_array = kind != field["type"]
    is_nullable = "nullableVersions" in field
    shown = _TYPES.get(kind, "int" if kind in _PRIMITIVES else kind)
    shown = f"tuple[{shown}, ...]" if is_array else shown
    shown += " | None" if is_nullable else ""
    at = ", ".join([f'"{field["versions"]}"', *_options(field)])
    primitive = f" {kind.upper()}," if kind in _PRIMITIVES else ""
    name, default = module_name(field["name"]), _default(field, kind, is_array=is_array)
    return f"    {name}: Annotated[{shown},{primitive} At({at})] = {default}\n"


def _options(field: dict[str, Any]) -> Iterator[str]:
    if "nullableVersions" in field:
        yield f'nullable="{field["nullableVersions"]}"'
    if "tag" in field:
        yield f"tag={field['tag']}"
        yield f'tagged="{field["taggedVersions"]}"'
    if field.get("ignorable"):
        yield "ignorable=True"


def _default(field: dict[str, Any], kind: str, *, is_array: bool) -> str:
    default = str(field.get("default", ""))
    if default == "null":
        return "None"
    if is_array:
        return "()"
    if kind not in _PRIMITIVES:
        return f"{kind}()"
    if not default:
        return _DEFAULTS.get(kind, "0")
    return {"true": "True", "false": "False"}.get(default, default if kind != "string" else json.dumps(default))


def main(path: str) -> None:
    """Rewrite the package from the definitions in a jar."""
    PACKAGE.mkdir(exist_ok=True)
    with ZipFile(path) as jar:
        for message in MESSAGES:
            definition = Definition.read(jar, message)
            (PACKAGE / f"{module_name(message)}.py").write_text(definition.module())
        (PACKAGE / "NOTICE").write_text(NOTICE + jar.read("NOTICE").decode())
    imports = [f"from transport.kafka.messages.{module_name(m)} import {m} as {m}\n" for m in MESSAGES]
    (PACKAGE / "__init__.py").write_text(
        '"""Kafka\'s messages, one module each, generated by tests/kafka/generate_messages.py; see NOTICE."""\n\n'
        + "".join(imports)
    )
    subprocess.run(["ruff", "check", "--quiet", "--fix", PACKAGE], check=False)
    subprocess.run(["ruff", "format", "--quiet", PACKAGE], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
