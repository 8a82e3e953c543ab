"""Kafka's tools say the same to the same commands, whether the controller is Kafka's own or ours.

What differs is listed in tool_differences.toml, each with the reason.
"""

from __future__ import annotations

import difflib
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from tests.kafka import jars
from tests.kafka.cluster_security import ClusterSecurity
from tests.kafka.tool_chapters import elections, features, ghosts, moves, topics, unclean_elections
from tests.kafka.tool_groups import groups
from tests.kafka.tool_permissions import permissions
from tests.kafka.tool_requests import requests
from tests.kafka.tool_settings import settings
from tests.kafka.tool_sides import Answer, Side, under_kafka, under_klamm
from tests.kit.certificates import authority
from transport.metadata import SecurityProtocol

Chapter = Callable[[Side], Awaitable[None]]
CHAPTERS: Final = (topics, features, settings, moves, elections, unclean_elections, groups, ghosts)
SECURED: Final = (topics, moves, elections, permissions)
DIFFERENCES: Final = Path(__file__).with_name("tool_differences.toml")
MISTAKES: Final = {"topics": 30, "features": 3, "settings": 15, "groups": 4, "moves": 8, "elections": 8}
"""The least number of commands of a chapter that fail, on both sides alike."""


@frozen
class Difference:
    """Text that a tool says under our controller to some commands, what it says under Kafka's instead, and why."""

    commands: str
    klamm: str
    kafka: str
    reason: str


def listed(name: str) -> set[Difference]:
    """Return the differences that are known, of tools, of requests, or of tools of users who prove who they are."""
    rows = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))
    return {Difference(**row) for row in rows.get(name, ())}


def as_by_kafka(answer: str, differences: Iterable[Difference], used: set[Difference]) -> str:
    """Return what was said under our controller as Kafka's would have it said."""
    for one in differences:
        if one.commands in answer and one.klamm in answer:
            used.add(one)
            answer = answer.replace(one.klamm, one.kafka)
    return answer


@pytest.mark.soak
async def test_tools_say_the_same_under_both_controllers(tools: Path, zookeeper: str, tmp_path: Path) -> None:
    assert tools.name == jars.RELEASE
    assert await compare(zookeeper, tmp_path, CHAPTERS) == listed("tools")


@pytest.mark.soak
async def test_unusual_requests_get_the_same_answers(tools: Path, zookeeper: str, tmp_path: Path) -> None:
    assert tools.name == jars.RELEASE
    assert await compare(zookeeper, tmp_path, (requests,)) == listed("requests")


@pytest.mark.soak
@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_SSL, SecurityProtocol.SSL], ids=["scram", "certificates"])
async def test_tools_say_the_same_to_users_who_prove_who_they_are(
    tools: Path, zookeeper: str, tmp_path: Path, protocol: SecurityProtocol
) -> None:
    assert tools.name == jars.RELEASE
    security = ClusterSecurity(protocol, authority(tmp_path / "known"))
    assert await compare(zookeeper, tmp_path, SECURED, security) >= listed("secured")


async def compare(
    zookeeper: str, directory: Path, chapters: Sequence[Chapter], security: ClusterSecurity | None = None
) -> set[Difference]:
    """Require that tools say the same under both controllers, and return the differences that there are."""
    said: list[dict[str, list[Answer]]] = []
    for running in (under_kafka, under_klamm):
        folder = directory / running.__name__
        folder.mkdir()
        async with running(f"{zookeeper}/{running.__name__}-{directory.name}", folder, security) as side:
            said.append(await play(side, chapters))
    known = listed("tools") | listed("secured") | listed("requests")
    used: set[Difference] = set()
    apart: list[str] = []
    for chapter, expected in said[0].items():
        wanted = "\n".join(map(str, expected))
        told = "\n".join(as_by_kafka(str(answer), known, used) for answer in said[1][chapter])
        apart += difflib.unified_diff(wanted.splitlines(), told.splitlines(), "kafka", "klamm", lineterm="", n=5)
        failed = [answer for answer in expected if answer.code]
        sys.stdout.write(f"{chapter}: {len(expected)} commands, {len(failed)} of them refused\n")
        if len(failed) < MISTAKES.get(chapter, 0):
            apart.append(f"{chapter}: {len(failed)} commands fail, where there were {MISTAKES[chapter]}")
    if apart:
        pytest.fail("\n".join(apart), pytrace=False)
    return used


async def play(side: Side, chapters: Sequence[Chapter]) -> dict[str, list[Answer]]:
    """Return what the tools say in each chapter."""
    said = {}
    for chapter in chapters:
        side.answers.clear()
        await chapter(side)
        said[chapter.__name__] = list(side.answers)
    return said
