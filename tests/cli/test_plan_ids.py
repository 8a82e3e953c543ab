"""Plans know their cluster and their topics: a twin of the cluster, and a topic that was created again, are refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from attrs import frozen
from msgspec.structs import replace

from controller.node.answers import Answers
from klamm.cli.demo.task_cluster import task_cluster
from tests.cli.rollout_runs import journal
from tests.cli.shell import Shell, bootstrap_of, run_klamm
from transport.messages import MetadataRequest, MetadataResponse
from transport.store import paths
from transport.store.protocol import Create, Delete, MetadataStore, ensure_paths

TOPICS = {"clicks": 1, "orders": 3}
OTHERWISE = "name that one with --bootstrap-server, or go on here with --other-cluster"
ELSEWHERE = f"Error: the plan was made on cluster first, and this is cluster second: {OTHERWISE}\n"
ORDERS_AGAIN = "topic orders was deleted and created again since the plan was made"


@frozen
class Twin:
    """A cluster, whose topics look like those of another one."""

    klamm: Shell
    store: MetadataStore

    async def create(self, *topics: str) -> None:
        for topic in topics or TOPICS:
            await self.klamm("topic", "create", topic, "--replica-assignment", ",".join(["1:2"] * TOPICS[topic]))

    async def create_again(self, topic: str) -> None:
        await self.klamm("topic", "delete", topic)
        await self.create(topic)

    async def replicas(self, topic: str) -> list[list[int]]:
        return [row["replicas"] for row in json.loads(await self.klamm("topic", "describe", topic, "-o", "json"))]

    async def ids(self) -> dict[str, str]:
        rows = json.loads(await self.klamm("state", "dump"))["partitions"]
        return {row["topic"]: row["topic_id"] for row in rows}

    async def plan(self, out: Path) -> Path:
        """Plan to empty broker 1 from what is there."""
        await self.klamm("plan", "remove-brokers", "--brokers", "1", "--out", str(out))
        return out

    async def stderr(self, *arguments: str) -> str:
        done = await run_klamm(*arguments, "--bootstrap-server", self.klamm.bootstrap)
        assert done.returncode == 0, done.stderr.decode()
        return done.stderr.decode()


@pytest.fixture(autouse=True)
def _told_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let controllers tell the id of the cluster, as those of Kafka brokers do."""

    async def read_metadata(self: Answers, request: MetadataRequest) -> MetadataResponse:
        described = await self.answer(request)
        assert isinstance(described, MetadataResponse)
        known = await self._cluster_id.read() if request.topics == () else None
        return replace(described, cluster_id=known or "")

    monkeypatch.setattr(Answers, "_read_metadata", read_metadata)


@pytest.fixture
async def nameless(tmp_path: Path) -> AsyncIterator[tuple[Twin, Twin]]:
    """Run two clusters that have no ids."""
    async with AsyncExitStack() as stack:
        twins = []
        for name in ("first", "second"):
            cluster = await stack.enter_async_context(task_cluster(tmp_path / name))
            twins.append(Twin(Shell(await bootstrap_of(cluster.store)), cluster.store))
            await twins[-1].create()
        yield twins[0], twins[1]


@pytest.fixture
async def twins(nameless: tuple[Twin, Twin]) -> tuple[Twin, Twin]:
    for twin, name in zip(nameless, ("first", "second"), strict=True):
        await ensure_paths(twin.store, ["/cluster"])
        await twin.store.multi([Create(paths.CLUSTER_ID, f'{{"version":"1","id":"{name}"}}'.encode())])
    return nameless


def execute(plan: Path, *options: str) -> tuple[str, ...]:
    return ("reassignment", "execute", "--reassignment-json-file", str(plan), *options)


async def test_a_plan_names_its_cluster_and_its_topics_in_each_form(twins: tuple[Twin, Twin], tmp_path: Path) -> None:
    first, _ = twins
    folder, file = await first.plan(tmp_path / "plan"), await first.plan(tmp_path / "plan.json")
    ids = await first.ids()
    assert len({*ids.values()}) == len(TOPICS)
    for path in (folder / "plan.json", folder / "rollback.json", file):
        document = json.loads(path.read_bytes())
        assert document["cluster_id"] == "first"
        assert {entry["topic"]: entry["topic_id"] for entry in document["partitions"]} == ids


async def test_execute_refuses_the_plan_of_another_cluster(twins: tuple[Twin, Twin], tmp_path: Path) -> None:
    first, second = twins
    file, back = await first.plan(tmp_path / "plan.json"), tmp_path / "back.json"
    for options in ((), ("--force",), ("--dry-run",)):
        assert await second.klamm(*execute(file, *options), fails=True) == ELSEWHERE
    assert await second.replicas("orders") == [[1, 2]] * 3
    said = await first.stderr(*execute(file, "--rollback-json-file", str(back)))
    assert "not checked" not in said
    assert json.loads(back.read_bytes())["cluster_id"] == "first"
    assert await second.klamm(*execute(back), fails=True) == ELSEWHERE
    said = await second.stderr(*execute(file, "--other-cluster"))
    assert "not checked: whether topics were created again, as this may be another cluster\n" in said
    assert all(1 not in replicas for replicas in await second.replicas("orders"))
    # The rollback that this printed is one for the second cluster.
    assert await first.klamm(*execute(back, "--dry-run"))


async def test_a_topic_that_was_created_again_is_not_moved_by_an_old_plan(
    twins: tuple[Twin, Twin], tmp_path: Path
) -> None:
    first, _ = twins
    folder = await first.plan(tmp_path / "plan")
    await first.create_again("orders")
    refusal = f"Error: {ORDERS_AGAIN}: plan anew\n"
    for options in ((), ("--force",), ("--other-cluster",)):
        assert await first.klamm(*execute(folder / "plan.json", *options), fails=True) == refusal
    refusal = f"Error: {ORDERS_AGAIN}: plan anew, or leave them out with --skip-changed\n"
    for verb in ("run", "start"):
        assert await first.klamm("rollout", verb, str(folder), fails=True) == refusal
    assert await first.replicas("orders") == [[1, 2]] * 3
    said = await first.klamm("rollout", "run", str(folder), "--skip-changed", "--dry-run")
    assert said.startswith("1 move, ")
    await first.klamm("rollout", "start", str(folder), "--skip-changed")
    await first.klamm("rollout", "status", str(folder), "--watch")
    assert await first.replicas("orders") == [[1, 2]] * 3
    assert all(1 not in replicas for replicas in await first.replicas("clicks"))


async def test_a_plan_for_a_topic_that_was_created_again_is_made_again(
    twins: tuple[Twin, Twin], tmp_path: Path
) -> None:
    first, second = twins
    folder = await first.plan(tmp_path / "plan")
    assert await second.klamm("rollout", "run", str(folder), "--replan", fails=True) == ELSEWHERE
    await first.create_again("orders")
    said = await first.stderr("rollout", "run", str(folder), "--replan")
    assert "planned again: the plan of before is in " in said
    assert all(1 not in replicas for replicas in await first.replicas("orders"))


async def test_a_rollout_from_outside_goes_on_only_where_it_began(twins: tuple[Twin, Twin], tmp_path: Path) -> None:
    first, second = twins
    folder = await first.plan(tmp_path / "plan")
    assert await second.klamm("rollout", "run", str(folder), fails=True) == ELSEWHERE
    assert journal(folder, "started") == []
    await first.klamm("rollout", "run", str(folder))
    began = f"Error: the rollout of this plan began on cluster first, and this is cluster second: {OTHERWISE}\n"
    assert await second.klamm("rollout", "undo", str(folder), fails=True) == began
    assert [entry["what"] for entry in journal(folder, "happened")] == ["finished"], "no order is left behind"
    assert await first.klamm("rollout", "undo", str(folder)) == "rollout: undone: 4 back\n"
    assert await first.replicas("orders") == [[1, 2]] * 3


async def test_a_rollout_of_the_controller_is_one_of_its_cluster(twins: tuple[Twin, Twin], tmp_path: Path) -> None:
    first, second = twins
    folder = await first.plan(tmp_path / "plan")
    for options in ((), ("--dry-run",)):
        assert await second.klamm("rollout", "start", str(folder), *options, fails=True) == ELSEWHERE
    said = await second.stderr("rollout", "start", str(folder), "--other-cluster")
    assert "not checked: whether topics were created again, as this may be another cluster\n" in said
    await second.klamm("rollout", "status", "plan", "--watch")
    for options in ((), ("--dry-run",)):
        assert await second.klamm("rollout", "undo", str(folder), *options, fails=True) == ELSEWHERE
    await second.klamm("rollout", "undo", str(folder), "--other-cluster")
    await second.klamm("rollout", "status", "plan", "--watch")
    assert await second.replicas("orders") == [[1, 2]] * 3


async def test_the_ids_of_topics_tell_clusters_apart_that_have_none(
    nameless: tuple[Twin, Twin], tmp_path: Path
) -> None:
    first, second = nameless
    folder = await first.plan(tmp_path / "plan")
    assert "cluster_id" not in json.loads((folder / "plan.json").read_bytes())
    said = await second.klamm(*execute(folder / "plan.json"), fails=True)
    assert said == "Error: topics clicks, orders were deleted and created again since the plan was made: plan anew\n"
    await first.klamm("rollout", "run", str(folder))
    said = await second.klamm("rollout", "undo", str(folder), fails=True)
    assert said == (
        "Error: since the rollout of this plan began, all of its topics were deleted and created again, or this is "
        f"another cluster: {OTHERWISE}\n"
    )
    assert "not checked" not in await first.stderr("rollout", "undo", str(folder))


async def test_what_cannot_be_checked_is_said(twins: tuple[Twin, Twin], tmp_path: Path) -> None:
    first, second = twins
    file = await first.plan(tmp_path / "plan.json")
    document = json.loads(file.read_bytes())
    del document["cluster_id"]
    for entry in document["partitions"]:
        del entry["topic_id"]
    file.write_text(json.dumps(document))
    said = await second.stderr(*execute(file, "--dry-run"))
    assert said == (
        "not checked: whether this is the cluster of the plan, as the plan does not name it; whether topics were "
        "created again, as the plan does not have the ids of topics clicks, orders\n"
    )
    assert said in await second.stderr("rollout", "run", str(file), "--dry-run")
    # A file of another tool claims nothing, and as little is said.
    for entry in document["partitions"]:
        del entry["before"]
    file.write_text(json.dumps(document))
    assert "not checked" not in await second.stderr(*execute(file, "--dry-run"))
    await second.store.multi([Delete(paths.CLUSTER_ID)])


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        ('"cluster_id":5,', "cluster_id must be a string, is 5"),
        ('"cluster_id":"a\\u0007",', "cluster_id must be a string, is 'a\\x07'"),
    ],
)
async def test_an_id_of_a_cluster_that_cannot_be_one(ids: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(f'{{"version":1,{ids}"partitions":[{{"topic":"t","partition":0,"replicas":[1]}}]}}')
    done = await run_klamm(*execute(file))
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: {file}: {fault}\n")


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        ('"a/b"', '"x"', "partitions[0].topic_id must be the id of a topic, is 'a/b'"),
        ('"x"', '"y"', "partitions[1].topic_id: an earlier entry has another id of topic t: plan anew"),
    ],
)
async def test_an_id_of_a_topic_that_cannot_be_one(first: str, second: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    entries = [
        f'{{"topic":"t","partition":{number},"replicas":[1],"topic_id":{topic_id}}}'
        for number, topic_id in enumerate((first, second))
    ]
    file.write_text(f'{{"version":1,"partitions":[{",".join(entries)}]}}')
    done = await run_klamm(*execute(file))
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: {file}: {fault}\n")


async def test_files_of_two_clusters_are_no_plan(twins: tuple[Twin, Twin], tmp_path: Path) -> None:
    first, second = twins
    folder, other = await first.plan(tmp_path / "plan"), await second.plan(tmp_path / "other")
    text = (other / "plan.json").read_text().replace("orders", "others").replace("clicks", "others-too")
    (folder / "plan-0002.json").write_text(text)
    said = await first.klamm("rollout", "run", str(folder), fails=True)
    assert said.startswith(f"Error: {folder}/plan.json: it was made on cluster first, and another file of the plan on")
