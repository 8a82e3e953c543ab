"""`klamm simulate` as users run it: a process, its output, and its exit code."""

from __future__ import annotations

import doctest
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import orjson
import pytest

from klamm.cli.formats import schema_of
from klamm.cli.run_documents import RandomRun, RandomRuns, ScenarioRuns
from klamm.cli.simulate import simulate as command
from simulator.random_run.run import RunOutcome
from simulator.scenario.language import schema
from tests.cli.shell import forks

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```\n\$ klamm simulate (.*?)\n(.*?)```", DOCS, re.DOTALL)
KLAMM_SIMULATE = (sys.executable, "-m", "klamm", "simulate")
INTERRUPTED = 130
WITHIN = 60
SCENARIO = """
cluster: {brokers: 3, controllers: 1}
topics: {orders: [[1, 2]]}
events:
  - reassign: {orders-0: [2, 3]}
expect:
  orders-0: {leader: 2}
"""


def test_the_schema_of_scenarios_is_printed() -> None:
    done = simulate("--schema")
    assert (done.returncode, orjson.loads(done.stdout)) == (0, schema())


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    if "--seeds" not in arguments:  # no processes of its own
        forked = forks().run(["simulate", *arguments], cwd=ROOT, text=b"", environment=dict(os.environ))
        return subprocess.CompletedProcess(arguments, forked.code, forked.stdout, forked.stderr)
    command = [*KLAMM_SIMULATE, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN, check=False)


def settled(text: str) -> str:
    """Remove everything that varies with each change of the code: digests of traces, and milliseconds of times."""
    return re.sub(r"^( *\d+)\.\d{3} ", r"\1 ", re.sub(r"trace [0-9a-f]{32}", "trace", text), flags=re.MULTILINE)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


# --- output -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "printed"), SESSIONS, ids=[arguments for arguments, _ in SESSIONS])
def test_the_docs_show_what_the_command_prints(arguments: str, printed: str) -> None:
    done = simulate(*arguments.split())
    assert (done.returncode, done.stderr) == (0, "")
    found = settled(done.stdout)
    assert doctest.OutputChecker().check_output(settled(printed), found, doctest.ELLIPSIS), found


def test_the_docs_show_a_table_many_seeds_and_random_runs() -> None:
    assert len(SESSIONS) == 3
    shown = SESSIONS[0][0]
    assert f"```yaml\n{(ROOT / shown).read_text(encoding='utf-8')}```" in DOCS


@pytest.mark.parametrize("arguments", [(), ("--seeds", "1..2")], ids=["one", "many"])
def test_json_has_the_partitions_the_rows_and_the_trace(scenario: Path, arguments: tuple[str, ...]) -> None:
    done = simulate(str(scenario), "-o", "json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    runs = orjson.loads(done.stdout)["runs"]
    assert [run["seed"] for run in runs] == ([1, 2] if arguments else [0])
    for run in runs:
        [partition] = run["partitions"]
        assert (run["succeeded"], partition["replicas"], partition["leader"]) == (True, [2, 3], 2)
        assert run["rows"][-1]["step"] == "B6"
        assert {entry["kind"] for entry in run["trace"]} >= {"event", "round", "commit", "frame"}


def test_documents_have_the_schema_of_the_command(scenario: Path) -> None:
    one, many = simulate("--seed", "4", "-o", "json"), simulate("--seeds", "4..5", "-o", "json")
    for done, kind in ((simulate(str(scenario), "-o", "json"), ScenarioRuns), (one, RandomRun), (many, RandomRuns)):
        found = msgspec.json.decode(done.stdout, type=kind)
        assert set(orjson.loads(done.stdout)) == set(kind.__struct_fields__)
        assert orjson.loads(msgspec.json.encode(found)) == orjson.loads(done.stdout)
        assert {"$ref": f"#/$defs/{kind.__name__}"} in schema_of(command)["anyOf"]


def test_wide_is_a_table_and_heads_can_be_left_out(scenario: Path) -> None:
    assert simulate(str(scenario), "-o", "wide").stdout == simulate(str(scenario)).stdout
    for arguments in ((str(scenario),), ("--seeds", "4..5")):
        table = simulate(*arguments).stdout
        bare = simulate(*arguments, "--no-headers").stdout
        assert table.endswith(bare)
        assert 1 <= len(table.splitlines()) - len(bare.splitlines()) <= 2


def test_one_thing_is_counted_in_the_singular(scenario: Path) -> None:
    assert simulate(str(scenario)).stdout.endswith("0 records acknowledged; 1 thing expected, none missed\n")


def test_a_random_run_in_yaml_has_its_plan_and_its_trace() -> None:
    done = simulate("--seed", "3", "-o", "yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("seed: 3\n")
    assert "\nplan:\n- cluster(" in done.stdout
    assert "\ntrace:\n- time: 0.0\n" in done.stdout


def test_a_feature_is_added_to_what_a_seed_has_drawn() -> None:
    drawn, added = simulate("--seed", "3"), simulate("--with", "rollouts", "--seed", "3")
    assert (drawn.returncode, added.returncode) == (0, 0)
    assert "StartRollout" not in drawn.stdout
    assert "StartRollout" in added.stdout


def test_a_failure_is_replayed_with_the_features_that_were_added() -> None:
    outcome = RunOutcome(3, "", {}, is_kafkas=True, always=("log directories",))
    assert outcome.options == " --kafka --with 'log directories' --seed 3"


def test_a_feature_that_does_not_exist_is_refused() -> None:
    refused = simulate("--with", "rolouts", "--seed", "3")
    assert refused.returncode == 2
    assert "there is no feature 'rolouts'" in refused.stderr


def test_random_runs_with_brokers_of_kafkas_are_of_the_same_seeds_but_other_runs() -> None:
    ours, kafkas = simulate("--seed", "3"), simulate("--kafka", "--seed", "3")
    assert (ours.returncode, kafkas.returncode) == (0, 0)
    assert "brokers Apache Kafka's, of" in kafkas.stdout
    assert "brokers Apache Kafka's" not in ours.stdout
    assert _last_line(ours.stdout) != _last_line(kafkas.stdout)
    assert _last_line(kafkas.stdout) in simulate("--kafka", "--seed", "3").stdout


def _last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_what_is_missed_is_told_with_its_line_and_seed_and_fails(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("leader: 2", "leader: 3"))
    done = simulate(str(scenario), "--seeds", "4..5")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{scenario}:7: with seed {seed}: orders-0: leader is 2, expected 3" for seed in (4, 5)
    ]
    assert done.stdout.splitlines()[0] == "--- seed 4"
    assert done.stdout.splitlines()[-1] == "2 runs, 2 failed"
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_scenario_may_have_a_seed_of_its_own_which_an_option_overrides(scenario: Path) -> None:
    scenario.write_text(f"seed: 5\n{SCENARIO}")
    summaries = [simulate(str(scenario), *option).stdout.splitlines()[-2] for option in ((), ("--seed", "6"))]
    assert ["with seed 5, " in summaries[0], "with seed 6, " in summaries[1]] == [True, True]


# --- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("", 2, "Error: give the file of a scenario, or --seeds 0..99 for random runs"),
        ("nowhere.yaml", 2, "File 'nowhere.yaml' does not exist."),
        ("examples", 2, "File 'examples' is a directory."),
        ("--seeds 5..1", 2, "'5..1' is not a range of seeds: write 0..99 for a hundred of them"),
        ("--seed -1", 2, "-1 is not in the range x>=0."),
        ("--seed 1 --seeds 1..2", 2, "Error: --seed and --seeds exclude each other: use only one of them"),
        (
            ".gitignore --shrink",
            2,
            "Error: --shrink makes random runs smaller: give it --seed or --seeds, and no scenario",
        ),
        ("--seed 1 --shrink -o json", 2, "Error: --shrink prints scenarios and tables: use it without -o"),
        ("--seed 1 -o xml", 2, "'xml' is not one of 'table', 'wide', 'json', 'yaml'."),
        (".gitignore", 1, ".gitignore:1:1: a scenario is a mapping with the keys cluster, topics, load,"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments: str, code: int, said: str) -> None:
    done = simulate(*arguments.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr.splitlines()[-1]


def test_output_that_cannot_be_written_is_told(scenario: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*KLAMM_SIMULATE, str(scenario)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WITHIN,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "Error: stdout: No space left on device\n")


# --- Ctrl-C, and processes that die -----------------------------------------------------------------------------


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a process group of its own, as a shell does."""
    with subprocess.Popen(
        [*KLAMM_SIMULATE, *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def wait_for_workers(process: subprocess.Popen[str], count: int) -> list[int]:
    """Wait until the child processes that execute runs exist; return their ids."""
    while process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(children) == count:
            return [int(child) for child in children]
        time.sleep(0.01)
    raise AssertionError(process.communicate())


@pytest.fixture
def two_cores() -> None:
    if not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores, and Linux to see which processes there are")


@pytest.mark.usefixtures("two_cores")
def test_ctrl_c_ends_random_runs_and_their_processes() -> None:
    with running("--seeds", "1..1000000") as process:
        workers = wait_for_workers(process, len(os.sched_getaffinity(0)))
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate(timeout=WITHIN)
    assert process.returncode == INTERRUPTED
    assert re.fullmatch(r"interrupted after \d+ of 1,000,000 runs, during \d+(, \d+)*\n", said)
    assert " of them different, 0 failed" in printed
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


@pytest.mark.usefixtures("two_cores")
def test_processes_do_not_outlive_a_command_that_is_killed() -> None:
    with running("--seeds", "1..1000000") as process:
        workers = [os.pidfd_open(worker) for worker in wait_for_workers(process, len(os.sched_getaffinity(0)))]
        process.kill()
        # Each ends with the run that it is in the middle of.
        assert all(select.select([worker], [], [], WITHIN)[0] for worker in workers)
    for worker in workers:
        os.close(worker)


@pytest.mark.usefixtures("two_cores")
def test_a_process_that_is_killed_is_a_failure_and_the_others_go_on() -> None:
    # So many seeds that the process has one under way when it is killed, however late that is.
    with running("--seeds", "1..8") as process:
        os.kill(wait_for_workers(process, 2)[0], signal.SIGKILL)
        printed, said = process.communicate(timeout=WITHIN)
    assert (process.returncode, said) == (1, "")
    assert re.search(
        r"^seed \d+ failed: a run comes to its end: its process died with exit code -9$", printed, re.MULTILINE
    )
    assert re.search(r"^8 runs, 7 of them different, 1 failed: \d+$", printed, re.MULTILINE)


def test_ctrl_c_ends_a_scenario(scenario: Path) -> None:
    with running(str(scenario), "--seeds", "1..1000000") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("seed 1: passed")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WITHIN)
    assert (process.returncode, said) == (INTERRUPTED, "interrupted\n")
