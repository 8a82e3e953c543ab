"""`klamm plan`: the effect of options, the places of files, and mistakes, which leave nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import trio
import yaml
from attrs import define, evolve, field
from click.testing import CliRunner, Result

from klamm.cli import main
from klamm.cli.formats import schema_of
from klamm.cli.planning import plan
from klamm.cli.planning.made_from import MADE_FROM, MadeFrom
from klamm.cli.planning.options import PlanReport
from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import OnBadRows, Sources
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.model.summary import Evenness, Flow, Load, PlannedBroker, Summary
from spark_bridge.process.request import EngineName, PlanRequest
from spark_bridge.progress import OnProgress, Progress, in_words

pytestmark = pytest.mark.requirement("E3")

FILES = {
    "plan-0001.json": '{"version":1,"partitions":[\n{"topic":"a","partition":0,"replicas":[2]},\n'
    '{"topic":"a","partition":1,"replicas":[2]}\n]}\n',
    "plan-0002.json": '{"version":1,"partitions":[\n{"topic":"b","partition":0,"replicas":[2]}\n]}\n',
    "rollback-0001.json": "{}",
    "plan.parquet": "",
}
SUMMARY = Summary(
    goal="remove-brokers",
    options={},
    engine="kernel",
    partitions=3,
    changed=3,
    reordered=0,
    moved_replicas=3,
    moved_bytes=300,
    lower_bound=300,
    brokers=(
        PlannedBroker(1, None, "draining", 1.0, None, Load(3, 3, 300, 0, 0), Load()),
        PlannedBroker(2, None, "live", 1.0, None, Load(), Load(3, 3, 300, 0, 0)),
    ),
    evenness=(Evenness("replicas", 0.0, 0.0, 0.05),),
    flows=(Flow(1, 2, 3, 300),),
    flows_left=0,
    reasons={"leaves broker 1": 3},
    set_aside={},
    unknown_loads=0,
    worse=(),
    needless=(),
    notes=(),
)


@define
class Planner:
    """Stands for the planning process: keeps the request, writes files, and answers."""

    requests: list[PlanRequest] = field(factory=list)
    files: dict[str, str] = field(factory=lambda: dict(FILES))
    summary: Summary = SUMMARY
    refusal: str | None = None

    async def compute_plan(self, request: PlanRequest, on_progress: OnProgress) -> Summary:
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        on_progress(Progress("moving replicas", 2, 9, "12 brokers"))
        write_files(Path(request.output), self.files)
        if self.refusal:
            raise PlanError(self.refusal)
        return self.summary

    @property
    def goal(self) -> Goal:
        """Return the goal of the one request."""
        (request,) = self.requests
        return request.goal


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Planner:
    """Put a planner behind the command, which works in an empty folder."""
    made = Planner()
    monkeypatch.setattr("klamm.cli.planning.making.compute_plan", made.compute_plan)
    monkeypatch.chdir(tmp_path)
    return made


def write_files(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


def planned(*arguments: str) -> Result:
    return CliRunner().invoke(plan, [*arguments, "--snapshot", "s.json"])


# --- what is asked for ------------------------------------------------------------------------------------------


def test_nothing_but_a_snapshot_asks_for_the_defaults(planner: Planner) -> None:
    assert planned("rebalance").exit_code == 0
    (request,) = planner.requests
    assert evolve(request, output="-") == PlanRequest(Sources(Path("s.json")), Goal(GoalKind.REBALANCE), "-")


def test_every_option_is_in_the_request(planner: Planner) -> None:
    result = planned(
        *("add-brokers", "--brokers", "8, 9", "--loads", "l.csv", "--loads", "m.parquet", "--brokers-table", "b.csv"),
        *("--set-aside-bad-rows", "--exclude", "3", "--tolerance", "0.2", "--leaders", "none", "--ignore-racks"),
        *("--force", "--engine", "spark", "--master", "spark://host:7077", "--conf", "spark.cores.max=8"),
        *("--dead-is-gone",),
        *("--timeout", "60", "--out", "plan"),
    )
    assert result.exit_code == 0
    (request,) = planner.requests
    files = Path("l.csv"), Path("m.parquet")
    assert evolve(request, output="-") == PlanRequest(
        sources=Sources(Path("s.json"), files, Path("b.csv"), OnBadRows.SET_ASIDE),
        goal=Goal(
            GoalKind.ADD_BROKERS,
            frozenset({8, 9}),
            tolerance=0.2,
            racks=False,
            leaders=LeaderScope.NONE,
            force=True,
            exclude=frozenset({3}),
            dead_is_gone=True,
        ),
        output="-",
        engine=EngineName.SPARK,
        master="spark://host:7077",
        timeout=60.0,
        conf={"spark.cores.max": "8"},
    )


@pytest.mark.parametrize(
    ("arguments", "goal"),
    [
        (("remove-brokers", "--brokers", "3,7"), Goal(GoalKind.REMOVE_BROKERS, frozenset({3, 7}))),
        (("relieve", "--brokers", "3"), Goal(GoalKind.RELIEVE, frozenset({3}))),
        (("repair-racks",), Goal(GoalKind.REPAIR_RACKS)),
        (("leaders", "--topics", "orders"), Goal(GoalKind.LEADERS, topics=("orders",))),
        (("leaders", "--exclude", "3"), Goal(GoalKind.LEADERS, exclude=frozenset({3}))),
        (
            ("set-replication-factor", "--replication-factor", "3", "--topics", "orders, c*", "--topics", "d"),
            Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=3, topics=("orders", "c*", "d")),
        ),
    ],
)
def test_every_command_has_its_goal(planner: Planner, arguments: tuple[str, ...], goal: Goal) -> None:
    assert planned(*arguments).exit_code == 0
    assert planner.goal == goal


@pytest.mark.parametrize("options", [(), ("--dead-is-gone",)])
def test_a_plan_again_is_for_the_same_brokers(planner: Planner, options: tuple[str, ...], tmp_path: Path) -> None:
    assert planned("rebalance", *options, "--out", "plan").exit_code == 0
    again = MadeFrom.read(tmp_path / "plan")
    assert again.others.get("dead_is_gone", False) is planner.goal.dead_is_gone
    # Earlier releases read a folder that does not have the option.
    assert ("dead_is_gone" in (tmp_path / "plan" / MADE_FROM).read_text()) is bool(options)


# --- where it goes ----------------------------------------------------------------------------------------------


def test_without_output_the_plan_is_printed_as_one_document(planner: Planner, tmp_path: Path) -> None:
    result = planned("rebalance")
    assert [row["topic"] for row in json.loads(result.stdout)["partitions"]] == ["a", "a", "b"]
    assert len(result.stdout.splitlines()) == 5
    assert not Path(planner.requests[0].output).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_json_file_gets_the_plan_as_one_document(planner: Planner, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("an older plan")
    assert planned("rebalance", "--out", "plan.json").stdout == ""
    assert len(json.loads((tmp_path / "plan.json").read_text())["partitions"]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    # Workers write beside the place where the plan goes.
    assert tmp_path in Path(planner.requests[0].output).parents


def test_a_plan_that_changes_nothing_is_a_document_too(planner: Planner) -> None:
    planner.files.clear()
    assert planned("rebalance").stdout == '{"version":1,"partitions":[],"nothing_to_change":true}\n'


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_gets_all_files(planner: Planner, tmp_path: Path, *, is_there: bool) -> None:
    if is_there:
        (tmp_path / "plan").mkdir()
    assert planned("rebalance", "--out", "plan").exit_code == 0
    assert {path.name for path in (tmp_path / "plan").iterdir()} == {*planner.files, MADE_FROM}
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_a_plan_that_changes_nothing_is_carried_out_by_doing_nothing(planner: Planner, tmp_path: Path) -> None:
    planner.files = {"plan.parquet": ""}
    assert planned("rebalance", "--out", "plan").exit_code == 0
    assert {path.name for path in (tmp_path / "plan").iterdir()} == {"plan.json", "plan.parquet", MADE_FROM}
    file = ("--reassignment-json-file", "plan/plan.json")
    for words in (
        ("reassignment", "execute", *file),
        ("reassignment", "verify", *file),
        ("rollout", "run", "plan"),
        ("rollout", "start", "plan"),
    ):
        done = CliRunner().invoke(main, words)
        text = "the plan changes nothing: there is nothing to do\n"
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", text), words
    cancelled = CliRunner().invoke(main, ["reassignment", "cancel", *file])
    assert (cancelled.exit_code, cancelled.stderr) == (1, "Error: plan/plan.json: the list of partitions is empty\n")


def test_only_a_plan_that_changes_nothing_makes_way_for_the_next(planner: Planner, tmp_path: Path) -> None:
    planner.files = {"plan.parquet": ""}
    for _ in range(2):
        assert planned("rebalance", "--out", "plan").exit_code == 0
    (tmp_path / "plan" / "notes").touch()
    refusal = "Error: plan is not empty: name another folder for the plan, or empty this one\n"
    assert planned("rebalance", "--out", "plan").stderr == refusal
    (tmp_path / "plan" / "notes").unlink()
    planner.files = dict(FILES)
    assert planned("rebalance", "--out", "plan").exit_code == 0
    assert {path.name for path in (tmp_path / "plan").iterdir()} == {*FILES, MADE_FROM}
    assert planned("rebalance", "--out", "plan").stderr == refusal
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_the_report_is_told_on_stderr(planner: Planner) -> None:
    result = planned("rebalance", "--out", "plan.json")
    assert "draining" in result.stderr
    assert planner.requests


def test_json_is_the_report_on_stdout(planner: Planner) -> None:
    result = planned("rebalance", "--out", "plan.json", "-o", "json")
    assert (json.loads(result.stdout)["moved_bytes"], result.stderr) == (300, "")
    assert planner.requests


def test_the_document_has_the_schema_of_the_command(planner: Planner) -> None:
    found = planned("rebalance", "--out", "plan.json", "-o", "json").stdout
    msgspec.json.decode(found, type=PlanReport)
    assert list(json.loads(found)) == list(schema_of(plan.commands["rebalance"])["$defs"]["PlanReport"]["properties"])
    assert yaml.safe_load(planned("rebalance", "--out", "plan", "-o", "yaml").stdout) == json.loads(found)
    assert planner.requests


def test_a_wide_report_folds_no_line_and_heads_can_be_left_out(planner: Planner) -> None:
    planner.summary = evolve(SUMMARY, notes=("a note that " + "goes on and " * 9 + "ends",))
    folded, wide = (planned("rebalance", "--out", "plan.json", "-o", form).stderr for form in ("table", "wide"))
    assert max(map(len, folded.splitlines())) <= 80
    assert any(line.endswith("goes on and ends") and line.startswith("a note") for line in wide.splitlines())
    assert planned("rebalance", "--out", "plan.json", "--no-headers").stderr.splitlines()[0].split()[:3] == [
        "1",
        "-",
        "draining",
    ]
    assert folded.splitlines()[0].split()[:3] == ["broker", "rack", "state"]


# --- old spellings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        (("-o", "plan"), "--out plan", "plan/plan-0001.json"),
        (("-o", "plan.json"), "--out plan.json", "plan.json"),
        (("-o", "./json"), "--out ./json", "json/plan-0001.json"),
        (("--output", "csv"), "--out csv", "csv/plan-0001.json"),
        (("--json", "--out", "plan"), "-o json", "plan/plan-0001.json"),
        (("-o", "plan", "--json"), "--out plan -o json", "plan/plan-0001.json"),
    ],
)
def test_an_old_spelling_works_with_one_warning(planner: Planner, old: tuple[str, ...], new: str, written: str) -> None:
    result = planned("rebalance", *old)
    assert result.exit_code == 0
    warnings = [line for line in result.stderr.splitlines() if "old spelling" in line]
    assert [line.partition(": use ")[2] for line in warnings] == [new]
    assert Path(written).exists()
    assert bool(result.stdout) is ("--json" in old)
    assert planner.requests


def test_a_format_is_no_folder_though_there_is_one(planner: Planner) -> None:
    Path("json").mkdir()
    assert json.loads(planned("rebalance", "-o", "json", "--out", "plan").stdout)["moved_bytes"] == 300
    assert list(Path("json").iterdir()) == []
    assert planned("rebalance", "--out", "json").exit_code == 0
    assert Path("json/plan-0001.json").exists()
    assert planner.requests


def test_a_page_is_written_beside_the_plan(planner: Planner, tmp_path: Path) -> None:
    assert planned("rebalance", "--out", "plan", "--report", "report.html").exit_code == 0
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert planner.requests


# --- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("relieve", "--brokers", "3,x"), "--brokers takes broker ids such as 3,7, not '3,x'"),
        (("relieve", "--brokers", ""), "--brokers takes broker ids such as 3,7, not ''"),
        (("rebalance", "--exclude", "-3-"), "--exclude takes broker ids such as 3,7, not '-3-'"),
        (("relieve", "--brokers", "3", "--exclude", "3"), "broker 3 is both named and excluded: it can be one of them"),
        (("rebalance", "--tolerance", "5"), "the tolerance must be above 0 and at most 1 (0.05 is 5 %), not 5.0"),
        (
            ("set-replication-factor", "--replication-factor", "0"),
            "the replication factor must be from 1 to 64, not 0",
        ),
        (("rebalance", "--conf", "cores"), "--conf takes NAME=VALUE such as spark.cores.max=8, not 'cores'"),
        (
            ("rebalance", "--conf", "cores=8"),
            "conf takes Spark's settings, whose names begin with 'spark.', not 'cores'",
        ),
        (
            ("rebalance", "--master", "yarn"),
            "on a cluster, workers write the plan: give --out, a place that all of them share",
        ),
        (
            ("rebalance", "--remote", "sc://host:15002"),
            "on a cluster, workers write the plan: give --out, a place that all of them share",
        ),
        (
            ("rebalance", "--out", "plan", "--remote", "host:15002"),
            "remote must be a Spark Connect address such as sc://host:15002, not 'host:15002'",
        ),
        (
            ("rebalance", "--out", "plan", "--remote", "sc://host", "--master", "yarn"),
            "master and remote are two places for Spark to run: give one of them",
        ),
        (
            ("rebalance", "--engine", "kernel", "--master", "local[4]"),
            "the kernel engine runs without Spark: leave out master and remote, or choose engine spark",
        ),
        (
            ("rebalance", "-o", "json"),
            "-o json prints to stdout, where the plan goes without --out: give --out",
        ),
        (
            ("rebalance", "--out", "s3a://bucket/plan.json"),
            "s3a://bucket/plan.json is a single file, but Spark writes a plan as several: name a folder",
        ),
    ],
)
def test_a_value_that_no_plan_takes_is_wrong_usage(planner: Planner, arguments: tuple[str, ...], line: str) -> None:
    result = planned(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.splitlines()[-1]) == (2, "", f"Error: {line}")
    assert not planner.requests


def test_a_wrong_value_is_refused_before_a_cluster_is_read() -> None:
    result = CliRunner().invoke(plan, ["rebalance", "--bootstrap-server", "127.0.0.1:1", "--tolerance", "5"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("Error: the tolerance must be above 0 and at most 1 (0.05 is 5 %), not 5.0\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("rebalance", "--out", "no/plan.json"), "no/plan.json: there is no folder no"),
        (("rebalance", "--out", "no/plan"), "no/plan: there is no folder no"),
        (("rebalance", "--out", "full"), "full is not empty: name another folder for the plan, or empty this one"),
        (
            ("rebalance", "--out", "full/file"),
            "full/file is a file: name a folder for the plan, or a file that ends in .json",
        ),
        (("rebalance", "--report", "full"), "full is a folder: name a file"),
        (("rebalance", "--report", "no/report.html"), "no/report.html: there is no folder no"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_planned(planner: Planner, arguments: tuple[str, ...], line: str) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    result = planned(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {line}\n")
    assert not planner.requests
    assert sorted(map(str, Path().rglob("*"))) == ["full", "full/file"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("rebalance", "--leaders", "some"), "'some' is not one of 'all', 'touched', 'none'."),
        (("rebalance", "--engine", "flink"), "'flink' is not one of 'auto', 'kernel', 'spark'."),
        (("rebalance", "--tolerance", "little"), "'little' is not a valid float."),
        (("remove-brokers",), "Missing option '--brokers'."),
        (("set-replication-factor",), "Missing option '--replication-factor'."),
        (("repair-racks", "--ignore-racks"), "No such option '--ignore-racks'"),
        (("leaders", "--leaders", "none"), "No such option '--leaders'."),
    ],
)
def test_what_no_option_takes_is_told_with_the_usage(
    planner: Planner, arguments: tuple[str, ...], complaint: str
) -> None:
    result = planned(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr.splitlines()[-1]
    assert not planner.requests


@pytest.mark.parametrize("output", ["plan", "plan.json"])
def test_a_refused_plan_leaves_nothing(planner: Planner, tmp_path: Path, output: str) -> None:
    planner.refusal = "broker 9 is not in the snapshot: choose from 1, 2"
    result = planned("relieve", "--brokers", "9", "--out", output, "--report", "report.html")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {planner.refusal}\n")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing(planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(request: PlanRequest, on_progress: OnProgress) -> Summary:
        await planner.compute_plan(request, on_progress)
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr("klamm.cli.planning.making.compute_plan", interrupted)
    result = planned("rebalance", "--out", "plan")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "")
    assert planner.requests
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_is_told_how_far_planning_is() -> None:
    assert in_words(Progress("reading")) == "reading"
    assert in_words(Progress("leaders", 2, 9, "12 brokers")) == "leaders, round 2 of at most 9: 12 brokers"


def test_help_and_mistakes_need_none_of_the_extras() -> None:
    code = "import sys, klamm.cli.planning; print({m.partition('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "pyspark", "py4j", "pandas"} & set(eval(done.stdout))  # noqa: S307 (a set's repr)
