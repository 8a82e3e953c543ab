"""The rows of the matrix in docs/kafka_clusters.md: what each command does on a running cluster of three brokers.

Each row is a function that uses its commands. It returns whether they work there; it fails if they neither work nor
say why not.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
import trio
from attrs import frozen

from tests.cli.shell import Shell, run_klamm
from tests.kafka.real_cluster import until

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "kafka_clusters.md"
ORDERS: Final = ("--entity-type", "topics", "--entity-name", "orders")
PARTITIONS: Final = 6
SLOW: Final = "100000"
"""A throttle so low that a move is still under way when the next command begins."""


@frozen
class Scene:
    """A cluster whose topic `orders` has data, with partitions at [1, 2] and [2, 1] in turn."""

    shell: Shell
    folder: Path

    async def rows(self, *words: str) -> Any:
        """Return what a command prints as JSON."""
        return json.loads(await self.shell(*words, "-o", "json"))

    async def state(self, partition: int) -> Any:
        """Return a partition of the topic."""
        return next(row for row in await self.rows("topic", "describe", "orders") if row["partition"] == partition)

    async def file(self, partition: int, *replicas: int) -> str:
        """Write a file that moves a partition, and return its path."""
        path = trio.Path(self.folder / f"move-{partition}.json")
        one = {"topic": "orders", "partition": partition, "replicas": replicas}
        await path.write_text(json.dumps({"version": 1, "partitions": [one]}))
        return str(path)


async def describe_cluster(scene: Scene) -> bool:
    """Count partitions, and find the controller."""
    found = await scene.rows("cluster", "describe")
    assert found["partitions"] >= PARTITIONS
    assert found["offline"] == found["being_reassigned"] == 0
    return found["controller"] is not None


async def list_brokers(scene: Scene) -> bool:
    """Count what brokers lead and have."""
    found = {row["id"]: row for row in await scene.rows("broker", "list")}
    assert found[1]["replicas"] >= PARTITIONS
    return {1, 2, 3} <= found.keys()


async def create_and_delete(scene: Scene) -> bool:
    """Create a topic unless it is there, enlarge it, and delete it."""
    create = ("topic", "create", "other", "--replica-assignment", "1:2", "--if-not-exists")
    assert await scene.shell(*create) == "created topic other\n"
    assert await scene.shell(*create) == "topic other exists already\n"
    await scene.shell("topic", "add-partitions", "other", "--partitions", "2")
    assert len(await scene.rows("topic", "describe", "other")) == 2
    assert await scene.shell("topic", "delete", "other") == "deleted topic other\n"
    return await scene.shell("topic", "delete", "other", "--if-exists") == "there is no topic other\n"


async def filter_topics(scene: Scene) -> bool:
    """List partitions that have too few replicas in sync for their topic."""
    few = ("topic", "create", "few", "--replica-assignment", "3", "--config", "min.insync.replicas=2")
    await scene.shell(*few)
    # Whether this is one of them is for the brokers' own setting to say.
    await scene.shell("topic", "create", "narrow", "--replica-assignment", "3")

    async def are_counted() -> bool:
        short = await scene.rows("topic", "describe", "--under-min-isr-partitions")
        counted: int = (await scene.rows("cluster", "describe"))["under_min_isr"]
        return counted == len(short)

    await until(are_counted)
    await scene.shell("topic", "delete", "narrow")
    listed = {}
    for lack in ("under-min-isr", "under-replicated", "unavailable"):
        flags = (f"--{lack}-partitions", "--exclude-internal")
        listed[lack] = [row["topic"] for row in await scene.rows("topic", "describe", *flags)]
    assert listed == {"under-min-isr": ["few"], "under-replicated": [], "unavailable": []}
    topics = await scene.rows("topic", "list", "--exclude-internal")
    return {"few", "orders"} <= {row["topic"] for row in topics}


async def alter_settings(scene: Scene) -> bool:
    """Change a setting of a topic, and see where each value comes from."""
    await scene.shell("config", "alter", *ORDERS, "--add-config", "max.message.bytes=2000000")

    async def is_there() -> bool:
        found = {row["name"]: row for row in await scene.rows("config", "describe", *ORDERS)}
        row = found["max.message.bytes"]
        return (row["value"], row["source"]) == ("2000000", "DYNAMIC_TOPIC_CONFIG")

    await until(is_there)
    return True


async def alter_any_setting(scene: Scene) -> bool:
    """Change a setting that only Kafka's brokers know."""
    at = ("--bootstrap-server", scene.shell.bootstrap)
    done = await run_klamm("config", "alter", *ORDERS, "--add-config", "segment.ms=3600000", *at)
    assert (done.returncode == 0) or b"segment.ms" in done.stderr
    return done.returncode == 0


async def elect(scene: Scene) -> bool:
    """Elect the preferred leaders."""
    await scene.shell("leader", "elect", "--election-type", "preferred", "--all-topic-partitions")

    async def are_preferred() -> bool:
        return all(row["leader"] == row["replicas"][0] for row in await scene.rows("topic", "describe", "orders"))

    await until(are_preferred)
    return True


async def elect_in_order(scene: Scene) -> bool:
    """Give a partition another order, whose first replica leads."""
    order = list(reversed((await scene.state(2))["replicas"]))
    words = ("--topic", "orders", "--partition", "2", "--replicas", ",".join(map(str, order)))
    await scene.shell("leader", "elect", "--election-type", "preferred", *words)
    now = await scene.state(2)
    return bool((now["leader"], now["replicas"]) == (order[0], order))


async def describe_log_dirs(scene: Scene) -> bool:
    """Find the logs of a topic, with their sizes."""
    found = await scene.rows("log-dirs", "describe", "--broker-list", "1,2", "--topic-list", "orders")
    sizes = {
        (one["broker"], log["partition"]): log["bytes"]
        for one in found
        for place in one["log_dirs"]
        for log in place["logs"]
    }
    assert sizes.keys() == {(broker, number) for broker in (1, 2) for number in range(PARTITIONS)}
    return bool(sizes[1, 0] > 0)


async def describe_disks(scene: Scene) -> bool:
    """Find how large the disks are."""
    found = await scene.rows("log-dirs", "describe")
    return all(place["total_bytes"] for one in found for place in one["log_dirs"])


async def move(scene: Scene) -> bool:
    """Move a partition, and verify that it has moved."""
    file = ("--reassignment-json-file", await scene.file(0, 3, 2))
    assert "orders-0: complete" in await scene.shell("reassignment", "execute", *file)
    assert "orders-0: complete" in await scene.shell("reassignment", "verify", *file)
    return bool((await scene.state(0))["replicas"] == [3, 2])


async def roll_out(scene: Scene) -> bool:
    """Carry a plan out, see that it is done, and take it back."""
    before = (await scene.state(3))["replicas"]
    file = await scene.file(3, 3, before[0])
    said = await scene.shell("rollout", "run", file, "--throttle", "100000000")
    status = await run_klamm("rollout", "status", file, "-o", "json")
    found = json.loads(status.stdout)
    assert (said, found["state"], found["moves"]["done"]) == ("rollout: done: 1 done\n", "done", 1)
    assert (await scene.state(3))["replicas"] == [3, before[0]]
    said = await scene.shell("rollout", "undo", file)
    return said == "rollout: undone: 1 back\n" and (await scene.state(3))["replicas"] == before


async def hand_over(scene: Scene) -> bool:
    """Let the controller carry a plan out and take it back, where it does that."""
    before = (await scene.state(3))["replicas"]
    at = ("--bootstrap-server", scene.shell.bootstrap)
    plan = await trio.Path(await scene.file(3, 3, before[0])).rename(scene.folder / "monday.json")
    done = await run_klamm("rollout", "start", str(plan), *at)
    if done.returncode:
        assert b"carries out no rollouts of its own" in done.stderr
        return False
    await run_klamm("rollout", "status", "monday", "--watch", *at)
    assert (await scene.state(3))["replicas"] == [3, before[0]]
    await scene.shell("rollout", "undo", "monday")
    await run_klamm("rollout", "status", "monday", "--watch", *at)
    await scene.shell("rollout", "remove", "monday")
    return bool((await scene.state(3))["replicas"] == before)


async def watch(scene: Scene) -> bool:
    """Begin a slow move, see it in the live view, and cancel it."""
    file = ("--reassignment-json-file", await scene.file(4, 3, 1))
    await scene.shell("reassignment", "execute", *file, "--throttle", SLOW, "--no-wait")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        lines = (await scene.shell("top", "--once")).splitlines()
    await scene.shell("reassignment", "cancel", *file)
    assert "1 under min ISR" in lines[1]
    assert [line.split()[:5] for line in lines if line.startswith("few-")] == [["few-0", "under", "min", "ISR", "3"]]
    assert lines[2].startswith("1 move in flight")
    brokers = {line.split()[0]: line.split() for line in lines if line.split()[3:4] == ["live"]}
    moves = [line.split()[:3] for line in lines if line.startswith("orders-")]
    assert moves == [["orders-4", "2", "3"]]
    return [brokers[id_][7] for id_ in "123"] == ["0", "0", "1"]


async def throttle_and_cancel(scene: Scene) -> bool:
    """Begin a slow move, see it under way, and cancel it."""
    file = ("--reassignment-json-file", await scene.file(1, 3, 1))
    await scene.shell("reassignment", "execute", *file, "--throttle", SLOW, "--no-wait")
    assert "orders-1" in await scene.shell("reassignment", "list")
    [row] = await scene.rows("reassignment", "describe")
    assert (row["partition"], row["adding_replicas"]) == (1, [3])
    assert "orders-1: cancelled" in await scene.shell("reassignment", "cancel", *file)
    assert await scene.shell("reassignment", "list") == "no reassignment is in progress\n"
    return set((await scene.state(1))["replicas"]) == {1, 2}


async def move_a_log(scene: Scene) -> bool:
    """Move the log of a partition to the other directory of its broker, where brokers do that."""
    state = await scene.state(2)
    [told] = await scene.rows(
        "log-dirs", "describe", "--topic-list", "orders", "--broker-list", str(state["replicas"][0])
    )
    homes = {one["path"]: any(log["partition"] == 2 for log in one["logs"]) for one in told["log_dirs"]}
    *_, path = sorted(homes, key=lambda path: not homes[path])
    entry = {"topic": "orders", "partition": 2, "replicas": state["replicas"]}
    file = scene.folder / "log.json"
    entry["log_dirs"] = [path, *["any"] * (len(state["replicas"]) - 1)]
    await trio.Path(file).write_text(json.dumps({"version": 1, "partitions": [entry]}))
    words = ("--reassignment-json-file", str(file), "--bootstrap-server", scene.shell.bootstrap)
    done = [await run_klamm("reassignment", verb, *words) for verb in ("execute", "verify")]
    said = [one.stderr.decode() for one in done]
    assert done[0].returncode == done[1].returncode, said
    assert done[0].returncode == 0 or all("do not move logs between directories" in text for text in said), said
    return done[0].returncode == 0


async def plan(scene: Scene) -> bool:
    """Dump the cluster with the sizes of its logs, and plan from it."""
    dump = json.loads(await scene.shell("state", "dump"))
    assert {row["bytes"] is not None for row in dump["partitions"] if row["topic"] == "orders"} == {True}
    path = trio.Path(scene.folder / "plan.json")
    await scene.shell("plan", "remove-brokers", "--brokers", "3", "--out", str(path))
    planned = json.loads(await path.read_text())["partitions"]
    return {(row["topic"], row["partition"]) for row in planned} >= {("orders", 0), ("few", 0)}


async def records(scene: Scene) -> bool:
    """Write a record."""
    at = ("--bootstrap-server", scene.shell.bootstrap)
    done = await run_klamm("produce", "orders", *at, stdin=b"one more\n")
    assert done.returncode == 0 or b"Kafka" in done.stderr
    return done.returncode == 0


Row = Callable[[Scene], Awaitable[bool]]
ROWS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "`cluster describe`": describe_cluster,
        "`broker list`": list_brokers,
        "`topic create`, `add-partitions`, `delete`": create_and_delete,
        "`topic list`, `describe`, with the filters of `kafka-topics`": filter_topics,
        "`config describe`, `alter`": alter_settings,
        "the same for settings that only Kafka has": alter_any_setting,
        "`log-dirs describe`": describe_log_dirs,
        "the same with the sizes of disks": describe_disks,
        "`reassignment execute`, `verify`": move,
        "`execute --throttle`, `list`, `describe`, `cancel`": throttle_and_cancel,
        "`execute`, `verify` of a file with `log_dirs`": move_a_log,
        "`rollout run`, `status`, `undo`": roll_out,
        "`rollout start` and its orders": hand_over,
        "`top`": watch,
        "`leader elect`": elect,
        "the same in a new order of replicas": elect_in_order,
        "`state dump`, `plan`": plan,
        "`produce`, `consume`": records,
    }
)
"""The rows in the order of the document, in which they run."""

KINDS: Final = ("Klamm's brokers", "Kafka, Klamm's controller", "Kafka with ZooKeeper", "Kafka under KRaft")
"""The columns of the document."""

_ANSWERS: Final = MappingProxyType({"yes": True, "no": False})


def cells() -> dict[str, dict[str, bool]]:
    """Return what the document promises, by row and kind of cluster."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    head = f"| | {' | '.join(KINDS)} |"
    table = lines[lines.index(head) + 2 :]
    found = {}
    for line in table[: table.index("")]:
        name, *answers = (cell.strip() for cell in line.strip("|").split("|"))
        found[name] = dict(zip(KINDS, (_ANSWERS[answer] for answer in answers), strict=True))
    return found
