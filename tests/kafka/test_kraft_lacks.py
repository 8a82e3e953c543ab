"""Partitions and logs that lack something under KRaft: a dead broker, a failed directory, a log on its way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.cli.shell import Shell
from tests.kafka import jars
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.kraft_cluster import Cluster, kraft_cluster
from tests.kafka.real_cluster import until
from tests.kafka.test_kafka_course import COPY_RATE, future_directories, write_entries
from tests.kafka.test_kafka_moves import SLOW
from tests.kafka.test_kraft_commands import directories_of_first, fill, rows, until_registered

TOPICS: Final = {
    "orders": ("1:3,3:1,1:3,3:1,1:3,3:1", 1),
    "pairs": ("1:2,2:3,3:1", 1),
    "alone": ("2,3", 1),
    "safe": ("1:2:3,2:3:1", 2),
    "strict": ("1:2,3:1", 2),
}
"""The replicas of each topic, and how many have to be in sync."""

DEAD: Final = 2
LACKS: Final = {
    "under-replicated": {("pairs", 0), ("pairs", 1), ("safe", 0), ("safe", 1), ("strict", 0)},
    "unavailable": {("alone", 0)},
    "under-min-isr": {("strict", 0), ("alone", 0)},
    "at-min-isr": {("pairs", 0), ("pairs", 1), ("safe", 0), ("safe", 1), ("strict", 1)},
}
"""Partitions that lack something while the broker is dead."""

_DESCRIBED: Final = re.compile(r"Topic: (\S+)\s+Partition: (\d+)\s")


async def create(shell: Shell) -> None:
    """Create the topics, and records for one of them."""
    await until_registered(shell, 3)
    for name, (replicas, in_sync) in TOPICS.items():
        settings = ("--config", f"min.insync.replicas={in_sync}")
        await shell("topic", "create", name, "--replica-assignment", replicas, *settings)
    await trio.to_thread.run_sync(fill, shell.bootstrap)


async def lacking(shell: Shell, lack: str) -> set[tuple[str, int]]:
    """Return the partitions that a filter lists."""
    return {(row["topic"], row["partition"]) for row in await rows(shell, "topic", "describe", f"--{lack}-partitions")}


async def lacking_by_kafka(tools: KafkaTools, lack: str) -> set[tuple[str, int]]:
    """Return those that Kafka's own tool lists."""
    code, text = await tools.run("kafka-topics", "--describe", f"--{lack}-partitions")
    assert code == 0, text
    return {(name, int(number)) for name, number in _DESCRIBED.findall(text)}


async def until_alike(shell: Shell) -> dict[str, set[tuple[str, int]]]:
    """Wait until each filter finds what Kafka's tool finds with it, and return that."""
    tools = KafkaTools(jars.folder(jars.RELEASE), shell.bootstrap)
    found: dict[str, set[tuple[str, int]]] = {}

    async def are_alike() -> bool:
        for lack in LACKS:
            found[lack] = await lacking(shell, lack)
        return all([found[lack] == await lacking_by_kafka(tools, lack) for lack in LACKS])

    await until(are_alike)
    return found


async def describe_without(shell: Shell, dead: int) -> None:
    """Describe the directories of the brokers that are alive, and name the dead one if it is asked for."""
    assert [one["broker"] for one in await rows(shell, "log-dirs", "describe")] == [1, 3]
    named = ("log-dirs", "describe", "--broker-list", f"1,{dead}", "--topic-list", "orders")
    assert await shell(*named, fails=True) == f"broker {dead} is not alive\n"
    assert await offline(shell, "pairs") == [str(dead), str(dead), "-"]


async def offline(shell: Shell, topic: str) -> list[str]:
    """Return the last column of a topic's partitions: the replicas that are offline."""
    return [line.split()[-1] for line in (await shell("topic", "describe", topic)).splitlines()[2:]]


async def see_a_future_log(shell: Shell, folder: Path) -> None:
    """Let a broker copy a log slowly, see it, and stop it."""
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    await shell("config", "alter", *broker, "--add-config", f"{COPY_RATE}={SLOW}")
    home, other = await directories_of_first(shell)
    entry = {"topic": "orders", "partition": 0, "replicas": [1, 3], "log_dirs": [other, "any"]}
    file = ("--reassignment-json-file", str(write_entries(folder / "copy.json", [entry])))
    await shell("reassignment", "execute", *file, "--no-wait")

    async def is_copying() -> bool:
        return await future_directories(shell) == [other]

    await until(is_copying)
    [told] = await rows(shell, "log-dirs", "describe", "--topic-list", "orders", "--broker-list", "1")
    copies = {one["path"]: [log for log in one["logs"] if log["is_future"]] for one in told["log_dirs"]}
    assert copies[home] == []
    [copy] = copies[other]
    assert (copy["topic"], copy["partition"]) == ("orders", 0)
    await shell("reassignment", "cancel", *file)


async def lose_a_directory(shell: Shell, cluster: Cluster) -> None:
    """Let a directory of a live broker fail: its logs are offline, and it is named with the error."""
    gone = cluster.nodes[3].log_dirs[1]
    await trio.Path(gone).rename(gone.with_name("gone"))
    # The broker notices when it creates a log there.
    await shell("topic", "create", "late", "--replica-assignment", "3,3,3,3")

    async def has_failed() -> bool:
        [told] = await rows(shell, "log-dirs", "describe", "--broker-list", "3")
        errors = [one["error"] for one in told["log_dirs"] if one["path"] == str(gone)]
        return errors == ["KAFKA_STORAGE_ERROR"]

    await until(has_failed)

    async def has_moved_its_leaders() -> bool:
        return set(await offline(shell, "orders")) == {"-", "3"}

    await until(has_moved_its_leaders)


@pytest.mark.soak
@pytest.mark.usefixtures("needs_kraft", "tools")
async def test_what_lacks_something_is_told_as_by_kafkas_tools(tmp_path: Path) -> None:
    async with kraft_cluster(tmp_path, 3) as cluster:
        shell = Shell(cluster.bootstrap)
        await create(shell)
        assert [lack for lack in LACKS if await lacking(shell, lack)] == ["at-min-isr"]
        cluster.nodes[DEAD].kill()

        async def is_missed() -> bool:
            return LACKS["under-replicated"] <= await lacking(shell, "under-replicated")

        await until(is_missed)
        found = await until_alike(shell)
        assert all(partitions <= found[lack] for lack, partitions in LACKS.items()), found
        await describe_without(shell, DEAD)
        await see_a_future_log(shell, tmp_path)
        await lose_a_directory(shell, cluster)
        found = await until_alike(shell)
        assert any(name == "late" for name, _ in found["unavailable"]), found
