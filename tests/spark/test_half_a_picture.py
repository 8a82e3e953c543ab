"""Brokers that do not serve keep what they have, and a plan names what it leaves at risk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner

from klamm.cli.planning import plan

pytestmark = pytest.mark.usefixtures("forked_bridge")

LISTS = [[1, 2], [2, 3], [3, 1], [1, 5], [5, 2], [3, 5], [1, 2], [2, 3]]
"""Broker 4 is empty, and broker 5 is not listed: it is dead, with three replicas."""

GOALS: dict[str, Sequence[str]] = {
    "rebalance": (),
    "add-brokers": ("--brokers", "4"),
    "remove-brokers": ("--brokers", "1"),
    "set-replication-factor": ("--replication-factor", "3"),
    "relieve": ("--brokers", "2"),
    "repair-racks": (),
    "leaders": (),
}


@frozen
class Report:
    """A plan: its document, its partitions by number, and the lines on stderr."""

    document: dict[str, Any]
    after: dict[int, list[int]]
    lines: list[str]

    def replicas(self, broker: int) -> int:
        """Return how many replicas a broker ends with."""
        (row,) = [row for row in self.document["brokers"] if row["id"] == broker]
        count: int = row["after"]["replicas"]
        return count


def inputs(folder: Path) -> list[str]:
    """Return the options that name the files in a folder."""
    files = {"snapshot": "snapshot.json", "loads": "loads.json", "brokers-table": "brokers.csv", "out": "plan.json"}
    return [word for option, name in files.items() for word in (f"--{option}", str(folder / name))]


def report(
    folder: Path,
    command: str,
    *options: str,
    lists: Sequence[Sequence[int]] = LISTS,
    table: str = "id\n",
    size: int = 10,
    listed: Sequence[int] = (1, 2, 3, 4),
    least: int | None = None,
) -> Report:
    """Plan for partitions t-0, t-1, ... of one size on these brokers; `least` is their min.insync.replicas."""
    rows = [
        {"topic": "t", "partition": n, "replicas": row, "min_insync_replicas": least} for n, row in enumerate(lists)
    ]
    loads = [{"topic": "t", "partition": n, "bytes": size} for n in range(len(lists))]
    (folder / "loads.json").write_text(json.dumps(loads))
    (folder / "snapshot.json").write_text(json.dumps({"brokers": [{"id": n} for n in listed], "partitions": rows}))
    (folder / "brokers.csv").write_text(table)
    done = CliRunner().invoke(plan, [command, *inputs(folder), "-o", "json", *options])
    assert done.exit_code == 0, done.stderr
    moved = {row["partition"]: row["replicas"] for row in json.loads((folder / "plan.json").read_text())["partitions"]}
    after = {n: moved.get(n, list(row)) for n, row in enumerate(lists)}
    return Report(json.loads(done.stdout), after, done.stderr.splitlines())


# --- brokers that do not serve ----------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", GOALS)
def test_a_broker_that_does_not_serve_keeps_its_replicas(goal: str, tmp_path: Path) -> None:
    found = report(tmp_path, goal, *GOALS[goal], "--force" if goal != "leaders" else "--tolerance=0.05")
    assert found.replicas(5) == 3
    assert all(5 in found.after[number] for number in (3, 4, 5))
    assert found.document["kept"] == [{"broker": 5, "replicas": 3}]
    or_gone = "" if goal in {"relieve", "leaders"} else " or --dead-is-gone"
    cure = f"`klamm plan remove-brokers --brokers 5`{or_gone} moves them"
    (line,) = [line for line in found.document["warnings"] if "do not serve" in line]
    assert line == f"3 replicas left on brokers that do not serve: 3 on broker 5; {cure}"


@pytest.mark.parametrize("goal", [goal for goal in GOALS if goal not in {"relieve", "leaders"}])
def test_its_replicas_move_if_dead_is_gone(goal: str, tmp_path: Path) -> None:
    found = report(tmp_path, goal, *GOALS[goal], "--force", "--dead-is-gone")
    assert found.replicas(5) == 0
    assert found.document["kept"] == []
    assert found.document["options"]["dead-is-gone"] == "yes"


def test_its_replicas_move_if_it_is_removed_by_name(tmp_path: Path) -> None:
    found = report(tmp_path, "remove-brokers", "--brokers", "5")
    assert found.replicas(5) == 0
    assert found.document["kept"] == []


@pytest.mark.parametrize("goal", ["relieve", "leaders"])
def test_goals_that_move_nothing_else_say_what_they_leave_though_dead_is_gone(goal: str, tmp_path: Path) -> None:
    found = report(tmp_path, goal, *GOALS[goal], "--dead-is-gone")
    assert found.document["kept"] == [{"broker": 5, "replicas": 3}]
    assert found.document["warnings"][0].endswith("; `klamm plan remove-brokers --brokers 5` moves them")


@pytest.mark.parametrize(("options", "left"), [((), 3), (("--dead-is-gone",), 0)])
def test_what_does_not_serve_is_relieved_only_if_dead_is_gone(
    options: Sequence[str], left: int, tmp_path: Path
) -> None:
    lists = [[1, 5], [5, 2], [3, 5]]
    found = report(
        tmp_path, "relieve", "--brokers", "5", "--force", *options, lists=lists, table="id,capacity\n5,0.01\n"
    )
    assert (found.replicas(5), found.document["kept"]) == (left, [{"broker": 5, "replicas": left}] if left else [])


def test_the_rack_of_a_broker_that_does_not_serve_counts(tmp_path: Path) -> None:
    # A copy is in rack c, on the broker that does not serve: the other one may go to a or b.
    table = "id,rack\n1,a\n2,b\n3,c\n4,c\n5,c\n"
    found = report(tmp_path, "remove-brokers", "--brokers", "1", lists=[[1, 5]] * 6, table=table)
    assert [sorted(row) for row in found.after.values()] == [[2, 5]] * 6


def test_a_crowded_rack_loses_the_copy_that_serves(tmp_path: Path) -> None:
    table = "id,rack\n1,a\n2,b\n3,c\n4,a\n5,a\n"
    found = report(tmp_path, "repair-racks", lists=[[1, 5], [5, 4]], table=table)
    assert all(5 in row and {2, 3} & {*row} for row in found.after.values())


def test_a_shorter_list_drops_the_copy_that_cannot_be_read(tmp_path: Path) -> None:
    found = report(tmp_path, "set-replication-factor", "--replication-factor", "1")
    assert [found.after[number] for number in (3, 4, 5)] == [[1], [2], [3]]


# --- partitions with copies only on such brokers ----------------------------------------------------------------


@pytest.mark.parametrize("goal", GOALS)
def test_a_partition_without_a_copy_that_serves_is_left_out_named_and_counted(goal: str, tmp_path: Path) -> None:
    lists = [*LISTS, [5], [5, 6]]
    gone = ("--dead-is-gone", *(["--force"] if goal != "leaders" else []))
    found = report(tmp_path, goal, *GOALS[goal], *gone, lists=lists)
    assert (found.after[8], found.after[9]) == ([5], [5, 6])
    assert (found.document["stranded"], found.document["first_stranded"]) == (2, ["t-8", "t-9"])
    assert found.document["partitions"] == len(lists)
    assert found.replicas(6) == 1
    (line,) = [line for line in found.document["warnings"] if "impossible" in line]
    assert line == (
        "2 partitions have copies only on brokers that do not serve, impossible to change until one of these returns; "
        "the plan leaves them out: t-8, t-9"
    )


def test_a_draining_broker_that_the_snapshot_does_not_list_does_not_serve(tmp_path: Path) -> None:
    found = report(tmp_path, "rebalance", "--force", lists=[*LISTS, [5]], table="id,state\n5,draining\n")
    assert found.document["stranded"] == 1
    assert found.replicas(5) == 1


def test_a_topic_of_which_nothing_can_change_is_still_a_topic(tmp_path: Path) -> None:
    found = report(tmp_path, "set-replication-factor", "--replication-factor", "2", "--topics", "t", lists=[[5], [6]])
    assert (found.document["stranded"], found.document["changed"]) == (2, 0)


# --- warnings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_each_format_has_each_warning_in_one_line(form: str, tmp_path: Path) -> None:
    table = "id,rack\n1,a\n2,a\n3,b\n4,b\n"
    options = ("--replication-factor", "3")
    warned = report(tmp_path, "set-replication-factor", *options, table=table).document["warnings"]
    found = CliRunner().invoke(plan, ["set-replication-factor", *inputs(tmp_path), *options, "-o", form])
    assert found.exit_code == 0
    lines = [line for line in found.stderr.splitlines() if line.startswith("warning: ")]
    assert lines == [f"warning: {line}" for line in warned]
    assert [line.split(": ")[0] for line in warned] == [
        "3 replicas left on brokers that do not serve",
        "broker 5 has no rack, others have one",
        "one rack ends with most copies of a partition, such as two of three",
    ]


def test_fewer_racks_than_copies(tmp_path: Path) -> None:
    lists, table = [[1, 2], [3, 4]], "id,rack\n1,a\n2,b\n3,a\n4,b\n"
    found = report(tmp_path, "set-replication-factor", "--replication-factor", "3", lists=lists, table=table)
    assert "fewer racks than copies: 2 racks for up to 3 copies of 2 partitions" in found.document["warnings"]
    assert report(tmp_path, "rebalance", lists=lists, table=table).document["warnings"] == []


@pytest.mark.parametrize(("least", "lines"), [(1, 0), (2, 1), (3, 1), (0, 0), (None, 0)])
def test_no_more_copies_than_min_insync_replicas(least: int | None, lines: int, tmp_path: Path) -> None:
    found = report(tmp_path, "set-replication-factor", "--replication-factor", "2", lists=[[1, 2, 3]], least=least)
    told = "1 partition ends with no more copies than min.insync.replicas: producers with acks=all stop as soon as one "
    assert [line for line in found.document["warnings"] if line.startswith(told)] == found.document["warnings"]
    assert len(found.document["warnings"]) == lines


def test_racks_that_do_not_count_warn_of_nothing(tmp_path: Path) -> None:
    lists, table = [[1, 2], [3, 4]], "id,rack\n1,a\n2,a\n3,b\n"
    warned = report(tmp_path, "rebalance", lists=lists, table=table).document["warnings"]
    assert warned[0] == "broker 4 has no rack, others have one: each without one counts as its own rack"
    assert report(tmp_path, "rebalance", "--ignore-racks", lists=lists, table=table).document["warnings"] == []


def test_a_repair_of_racks_that_fits_nowhere_leaves_the_rest_planned(tmp_path: Path) -> None:
    # Each of two partitions has both copies in rack a; broker 3 has room for one of them.
    table = "id,rack,disk\n1,a,1000\n2,a,1000\n3,b,15\n4,a,1000\n"
    found = report(tmp_path, "repair-racks", lists=[[1, 2], [2, 1]], table=table)
    assert (found.document["unrepaired"], found.document["changed"], found.replicas(3)) == (1, 1, 1)
    assert (
        "1 partition with too many copies in a rack stays as it is: no disk of another rack has room"
        in found.document["warnings"]
    )
    assert found.document["ratio"] == 1.0


def test_brokers_leave_though_no_repair_of_racks_fits(tmp_path: Path) -> None:
    # Broker 4 has to leave, and only broker 3 has room: repairs would need the same room.
    table = "id,rack,disk\n1,a,20\n2,a,20\n3,b,15\n4,b,1000\n"
    lists = [[1, 2], [1, 2], [4, 1]]
    found = report(tmp_path, "remove-brokers", "--brokers", "4", lists=lists[:1] + lists[2:], table=table)
    assert (found.replicas(4), found.replicas(3), found.document["unrepaired"]) == (0, 1, 1)


# --- disks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["rebalance", "add-brokers", "remove-brokers"])
def test_brokers_that_end_above_their_disks_are_named_with_the_bytes_over(goal: str, tmp_path: Path) -> None:
    table = "id,disk\n1,25\n2,25\n3,25\n4,100\n"
    lists = [[1, 2], [2, 3], [3, 1]]
    full = report(tmp_path, "rebalance", "--exclude", "4", lists=lists, table=table.replace("25", "19"))
    assert full.document["overfull"] == [{"broker": n, "bytes_over": 1} for n in (1, 2, 3)]
    (line,) = full.document["warnings"]
    assert line.startswith("3 brokers end above their disks: broker 1 by 1 B, broker 2 by 1 B, broker 3 by 1 B; add ")
    assert full.document["notes"] == []
    assert report(tmp_path, goal, *GOALS[goal], "--force", lists=lists, table=table).document["overfull"] == []


def test_six_brokers_with_more_data_than_disks_have_one_judgement(tmp_path: Path) -> None:
    lists = [[1 + n % 6, 1 + (n + 1) % 6] for n in range(156)]
    table = "id,disk\n" + "".join(f"{n},500\n" for n in range(1, 7))
    found = report(tmp_path, "rebalance", lists=lists, table=table, listed=range(1, 7))
    assert [row["bytes_over"] for row in found.document["overfull"]] == [20] * 6
    assert found.document["notes"] == []
    shown = CliRunner().invoke(plan, ["rebalance", *inputs(tmp_path)])
    (row,) = [line for line in shown.stderr.splitlines() if line.startswith("bytes ") and "%" in line]
    assert row.rstrip().endswith("above disk")
