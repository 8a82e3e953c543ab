"""The ids in a plan against those of a cluster, and the call of the Python API for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from attrs import frozen

import klamm
from controller.admin.move_admin import MoveAdmin
from controller.admin.plan_ids import Comparison, PlanIds, created_again
from transport.messages import UNKNOWN, MetadataResponse, PartitionState

PLAN = PlanIds("first", {"clicks": "c1", "orders": "o1"})
SAME = {"clicks": "c1", "orders": "o1"}
AGAIN = {"clicks": "c1", "orders": "o2"}
NAMES_NONE = "whether this is the cluster of the plan, as the plan does not name it"
TELLS_NONE = "whether this is the cluster of the plan, as this one does not tell its id"
MAY_BE_OTHER = "whether topics were created again, as this may be another cluster"


def states(topics: Mapping[str, str]) -> list[PartitionState]:
    return [PartitionState(name, id_, 0, UNKNOWN, 1, 1, (1,), UNKNOWN, (1,)) for name, id_ in topics.items()]


def lacks(what: str, topics: str) -> str:
    return f"whether topics were created again, as {what} {topics}"


@pytest.mark.parametrize(
    ("plan", "cluster_id", "topics", "found"),
    [
        (PLAN, "first", SAME, Comparison()),
        (PLAN, "first", {}, Comparison()),
        (PLAN, "first", AGAIN, Comparison(created_again=("orders",))),
        (PLAN, "second", SAME, Comparison("the plan was made on cluster first, and this is cluster second")),
        # The ids of topics tell clusters apart, too.
        (PLAN, None, SAME, Comparison()),
        (PlanIds(None, SAME), "first", SAME, Comparison()),
        (PLAN, None, AGAIN, Comparison(created_again=("orders",))),
        (
            PLAN,
            None,
            {"clicks": "", "orders": ""},
            Comparison(unchecked=(TELLS_NONE, lacks("the cluster has no ids for", "topics clicks, orders"))),
        ),
        (
            PlanIds(),
            "first",
            SAME,
            Comparison(unchecked=(NAMES_NONE, lacks("the plan does not have the ids of", "topics clicks, orders"))),
        ),
        (
            PlanIds("first", {"orders": "o1"}),
            "first",
            AGAIN,
            Comparison(
                created_again=("orders",),
                unchecked=(lacks("the plan does not have the ids of", "topic clicks"),),
            ),
        ),
    ],
)
def test_ids_are_compared_as_far_as_both_sides_have_them(
    plan: PlanIds, cluster_id: str | None, topics: Mapping[str, str], found: Comparison
) -> None:
    assert plan.compare(cluster_id, states(topics)) == found


@pytest.mark.parametrize(
    ("cluster_id", "found"),
    [
        ("second", Comparison(unchecked=(MAY_BE_OTHER,))),
        (None, Comparison(unchecked=(MAY_BE_OTHER,))),
        ("first", Comparison(created_again=("orders",))),
    ],
)
def test_topics_of_another_cluster_are_not_compared(cluster_id: str | None, found: Comparison) -> None:
    assert PLAN.compare(cluster_id, states(AGAIN), other_cluster=True) == found


def test_files_of_one_plan_go_together() -> None:
    part = PlanIds("first", {"logs": "l1"})
    assert PLAN.together(part) == PlanIds("first", {**SAME, "logs": "l1"})
    assert PlanIds().together(PLAN) == PLAN.together(PlanIds()) == PLAN
    with pytest.raises(ValueError, match="it was made on cluster second, and another file of the plan on first"):
        PLAN.together(PlanIds("second"))
    with pytest.raises(ValueError, match="another file of the plan has another id of topic orders: plan anew"):
        PLAN.together(PlanIds("first", AGAIN))


# --- the call ---------------------------------------------------------------------------------------------------


@frozen
class ScriptedAdmin:
    """The calls of a client that `require` makes."""

    id_: str | None
    topics: Mapping[str, str]

    async def cluster_id(self) -> str | None:
        return self.id_

    async def read_metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        wanted = {name: id_ for name, id_ in self.topics.items() if topics is None or name in topics}
        return MetadataResponse(None, UNKNOWN, (), tuple(states(wanted)))


def admin(id_: str | None, topics: Mapping[str, str]) -> MoveAdmin:
    return cast("MoveAdmin", ScriptedAdmin(id_, topics))


async def test_a_program_requires_the_cluster_of_its_plan() -> None:
    entries = [{"topic": name, "partition": 0, "replicas": [1], "topic_id": id_} for name, id_ in SAME.items()]
    ids = klamm.PlanIds.of({"version": 1, "cluster_id": "first", "partitions": entries})
    assert ids == PLAN
    assert await ids.require(admin("first", SAME)) == ()
    with pytest.raises(klamm.OtherCluster, match=r"^the plan was made on cluster first, and this is cluster second$"):
        await ids.require(admin("second", AGAIN))
    assert await ids.require(admin("second", AGAIN), other_cluster=True) == (MAY_BE_OTHER,)
    with pytest.raises(klamm.PlanMismatch, match=r"^topic orders was deleted and created again since") as caught:
        await ids.require(admin("first", AGAIN))
    assert isinstance(caught.value, klamm.TopicsCreatedAgain)
    assert caught.value.topics == ("orders",)


def test_many_topics_are_named_in_part() -> None:
    again = {f"topic-{number:02}": "new" for number in range(13)}
    found = PlanIds("first", dict.fromkeys(again, "old")).compare("first", states(again))
    names = ", ".join(list(again)[:10])
    assert created_again(found.created_again).startswith(f"topics {names} and 3 more were deleted")


def test_a_file_of_kafkas_own_has_no_ids() -> None:
    assert PlanIds.of({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}) == PlanIds()
