"""AlterReplicaLogDirsRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Entity, Message, parse_versions


class AlterReplicaLogDirTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class AlterReplicaLogDir(Entity, frozen=True):
    path: Annotated[str, STRING, At("0+")] = ""
    topics: Annotated[tuple[AlterReplicaLogDirTopic, ...], At("0+")] = ()


class AlterReplicaLogDirsRequest(Message, frozen=True):
    api_key = 34
    versions = parse_versions("0-2")
    flexible = parse_versions("2+")

    dirs: Annotated[tuple[AlterReplicaLogDir, ...], At("0+")] = ()
