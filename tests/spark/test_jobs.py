"""Names of Spark's jobs, without a session: its UI is told once, and Spark Connect gets tags."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from attrs import define, field

from spark_bridge.jobs import NamedJobs
from spark_bridge.progress import Progress


@define
class Connected:
    """Stands for a session of Spark Connect: it has tags and no context."""

    tags: set[str] = field(factory=set)

    def addTag(self, tag: str) -> None:  # noqa: N802 (as PySpark spells it)
        assert "," not in tag
        self.tags.add(tag)

    def removeTag(self, tag: str) -> None:  # noqa: N802
        self.tags.remove(tag)

    def clearTags(self) -> None:  # noqa: N802
        self.tags.clear()


def test_spark_connect_has_one_tag_at_a_time_and_none_afterwards() -> None:
    session = Connected()
    jobs = NamedJobs("klamm plan rebalance", lambda _: None)
    jobs.on(cast("Any", session))
    jobs(Progress("leaders", 2, 9, "12 brokers"))
    assert session.tags == {"klamm plan rebalance: leaders round 2 of at most 9: 12 brokers"}
    jobs.end()
    assert session.tags == set()


def test_the_address_of_the_ui_is_told_once_and_only_where_there_is_one() -> None:
    for address in ("http://127.0.0.1:4040", None):
        told: list[Progress] = []
        context = SimpleNamespace(uiWebUrl=address, setJobGroup=lambda *_: None)
        jobs = NamedJobs("klamm plan rebalance", told.append)
        for _ in range(2):
            jobs.on(cast("Any", SimpleNamespace(_sc=context)))
        jobs(Progress("reading"))
        assert [progress.ui for progress in told] == [address, None][address is None :]
