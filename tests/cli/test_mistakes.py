"""The mistakes of a first hour: one line with the remedy, exit code 1, no traceback. Ctrl-C is not a mistake."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from klamm.cli import main
from tests.cli.shell import forks
from transport.network import TcpNetwork
from transport.wire import serve

KLAMM = (sys.executable, "-m", "klamm")
INTERRUPTED = 130

HIDE = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden} else self.finder.find_spec(name, path, target)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""

SNAPSHOT = """{"brokers": [{"id": 1, "host": "a", "port": 1, "rack": null},
{"id": 2, "host": "a", "port": 1, "rack": null}],
"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "leader": 1, "isr": [1],
"adding_replicas": [], "removing_replicas": []}]}"""


def complaint(*arguments: str, stdin: str = "") -> str:
    done = forks().run(arguments, cwd=Path.cwd(), text=stdin.encode(), environment=dict(os.environ))
    return the_line(done.code, done.stdout, done.stderr)


def complaint_in(env: dict[str, str], *arguments: str) -> str:
    """Return what is said by a process of its own, which finds no more than it may."""
    done = subprocess.run(
        [*KLAMM, *arguments], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **env}
    )
    return the_line(done.returncode, done.stdout, done.stderr)


def the_line(code: int, stdout: str, stderr: str) -> str:
    """Return the one line with which a command failed."""
    assert code == 1, stdout + stderr
    # What a service logged before it met its mistake begins with the time.
    # A command that changes something names its cluster first.
    lines = [line for line in stderr.splitlines() if not re.match(r"\d\d:\d\d:\d\d|cluster .*at ", line)]
    assert len(lines) == 1, stderr
    return lines[0]


async def refused(*arguments: str, stdin: str = "") -> str:
    return await trio.to_thread.run_sync(lambda: complaint(*arguments, stdin=stdin))


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[tuple[trio.Process, str]]:
    """Run a command until the block ends; gives what it printed first."""
    command = [*KLAMM, *arguments]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        printed = b""
        while b"listens on" not in printed and (more := await process.stdout.receive_some()):
            printed += more
        yield process, printed.decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def port_of(printed: str) -> str:
    return printed.split("listens on 127.0.0.1:")[1].split(maxsplit=1)[0]


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(tmp_path), "JAVA_HOME": ""}


def without(modules: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Return an environment in which Python finds no modules of these names."""
    (folder / "sitecustomize.py").write_text(HIDE.format(hidden=modules))
    return {
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")]), str(Path.cwd())])
    }


@pytest.fixture
def no_spark(tmp_path: Path) -> dict[str, str]:
    return without(("pyspark",), tmp_path)


@pytest.fixture
def no_extras(tmp_path: Path) -> dict[str, str]:
    return without(("numpy", "pandas", "pyarrow", "pyspark"), tmp_path)


# --- what is not installed --------------------------------------------------------------------------------------


def test_no_java(no_java: dict[str, str], tmp_path: Path) -> None:
    missing = "Error: Java 17 or later is not installed: apt-get install openjdk-17-jre-headless"
    assert complaint_in(no_java, "zookeeper", "run", "--port", "0", "--data-dir", str(tmp_path)) == missing
    assert complaint_in(no_java, "demo") == f"{missing}, or run it without: klamm demo --store memory"


def test_no_spark(no_spark: dict[str, str], tmp_path: Path) -> None:
    missing = "Error: the development ZooKeeper comes in PySpark's jars: pip install 'klamm[spark]'"
    assert complaint_in(no_spark, "zookeeper", "run", "--port", "0", "--data-dir", str(tmp_path)) == missing
    assert complaint_in(no_spark, "demo") == f"{missing}, or run it without: klamm demo --store memory"


def test_planning_on_spark_without_it(no_spark: dict[str, str], no_java: dict[str, str], tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(SNAPSHOT)
    plan = ("plan", "remove-brokers", "--snapshot", str(snapshot), "--brokers", "1", "--engine", "spark")
    assert complaint_in(no_spark, *plan) == "Error: planning needs pyspark: pip install 'klamm[spark]'"
    assert complaint_in(no_java, *plan).startswith("Error: planning needs Java, and there is none in PATH: install")


def test_planning_without_its_extra(no_extras: dict[str, str], tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(SNAPSHOT)
    plan = ("plan", "remove-brokers", "--snapshot", str(snapshot), "--brokers", "1")
    assert complaint_in(no_extras, *plan) == "Error: planning needs numpy: pip install 'klamm[plan]'"
    cluster = ("plan", "generate-cluster", "--out", str(tmp_path / "cluster"))
    assert complaint_in(no_extras, *cluster) == "Error: generating needs numpy: pip install 'klamm[plan]'"


def test_a_report_without_templates_is_refused_before_planning(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(SNAPSHOT)
    plan = ("plan", "remove-brokers", "--snapshot", str(snapshot), "--brokers", "1", "--report", "page.html")
    missing = "Error: the HTML report needs jinja2: pip install 'klamm[plan]'"
    assert complaint_in(without(("jinja2",), tmp_path), *plan) == missing


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "fault"), [("nonsense", "not JSON"), ("{}", "give the output of `klamm state dump`")])
def test_a_malformed_snapshot(tmp_path: Path, text: str, fault: str) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(text)
    assert fault in complaint("plan", "remove-brokers", "--snapshot", str(snapshot), "--brokers", "1")


def test_no_place_for_data(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    below = str(place / "data")
    assert complaint("broker", "run", "--id", "1", "--log-dir", below) == (
        f"Error: cannot write to {below} (Not a directory): choose another directory with --log-dir"
    )
    assert complaint("zookeeper", "run", "--port", "0", "--data-dir", below).endswith(": name another directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission_to_write_data(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    said = complaint("broker", "run", "--id", "1", "--log-dir", str(tmp_path / "data"))
    assert "(Permission denied): choose another directory with --log-dir" in said


# --- addresses --------------------------------------------------------------------------------------------------


async def test_ports_and_hosts_that_cannot_be_had(zookeeper: str, tmp_path: Path, nursery: trio.Nursery) -> None:
    taken = str(await nursery.start(serve, TcpNetwork(), {}, "127.0.0.1", 0))
    store = ("--zookeeper", f"{zookeeper}/ports")
    in_use = f"Error: port {taken} of 127.0.0.1 is in use: choose another with --port"
    assert await refused("controller", "run", "--id", "1001", "--port", taken, *store) == in_use
    log_dir = ("--log-dir", str(tmp_path / "1"))
    assert await refused("broker", "run", "--id", "1", "--port", taken, *log_dir, *store) == in_use
    said = await refused("zookeeper", "run", "--port", taken, "--data-dir", str(tmp_path / "zookeeper"))
    assert said.startswith(f"Error: port {taken} of 127.0.0.1 is not free")
    said = await refused("controller", "run", "--id", "1001", "--host", "192.0.2.1", *store)
    assert said == "Error: 192.0.2.1 is not an address of this machine: choose one with --host"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("topic list --timeout -1", "-1 is not a number of seconds above 0"),
        ("consume t --timeout nan", "nan is not a number of seconds above 0"),
        ("produce t --timeout 0", "0 is not a number of seconds above 0"),
        ("produce t --partition -1", "-1 is not in the range x>=0."),
        ("consume t --from-offset -1", "-1 is not in the range x>=0."),
        ("topic list --bootstrap-server a:65536", "Invalid value for --bootstrap-server: 'a:65536' is not HOST:PORT"),
        ("topic create t --replica-assignment 1:2 --partitions 2",
         "Error: give either --replica-assignment, or --partitions and --replication-factor"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_meant(command: str, said: str) -> None:
    done = CliRunner().invoke(main, command.split())
    assert (done.exit_code, done.output.splitlines()[-1].endswith(said)) == (2, True), done.output


async def test_what_listens_is_not_zookeeper(nursery: trio.Nursery) -> None:
    port = await nursery.start(serve, TcpNetwork(), {}, "127.0.0.1", 0)
    assert await refused("topic", "list", "--zookeeper", f"127.0.0.1:{port}", "--timeout", "1") == (
        f"Error: 127.0.0.1:{port} opened no session within 1 s: is it ZooKeeper that listens there?"
    )


# --- ids, topics, and what is not there -------------------------------------------------------------------------


async def test_ids_and_topics_in_a_young_cluster(zookeeper: str, tmp_path: Path) -> None:
    store = ("--zookeeper", f"{zookeeper}/young")
    plan = tmp_path / "move.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"nowhere","partition":0,"replicas":[1]}]}')
    async with running("controller", "run", "--id", "1001", *store) as (_, told):
        live = f"controller id 1001 is already live at 127.0.0.1:{port_of(told)}"
        said = await refused("controller", "run", "--id", "1001", *store)
        assert said == f"Error: {live}: stop that one or choose another id"
        nobody = "Error: no broker is alive: start one with `klamm broker run --id 1`"
        assert await refused("topic", "create", "t", *store) == nobody
        assert await refused("topic", "create", "t", "--replica-assignment", "1:2", *store) == nobody
        log_dir = str(tmp_path / "1")
        async with running("broker", "run", "--id", "1", "--port", "0", "--log-dir", log_dir, *store) as (_, printed):
            bootstrap = ("--bootstrap-server", f"127.0.0.1:{port_of(printed)}")
            assert await refused("controller", "run", "--id", "1", *store) == (
                "Error: id 1 is that of a live broker: a controller needs one that no broker has"
            )
            twin = ("broker", "run", "--port", "0", "--session-timeout", "1000", *store)
            said = await refused(*twin, "--id", "1", "--log-dir", str(tmp_path / "2"))
            assert said.startswith("Error: broker id 1 is already live at 127.0.0.1:")
            said = await refused(*twin, "--id", "2", "--log-dir", log_dir)
            assert said.endswith("says broker 1, not 2: give broker 2 a log dir of its own")
            for command in ("produce", "consume"):
                said = await refused(command, "nowhere", "--timeout", "0.5", *bootstrap, stdin="a line\n")
                assert said.startswith("Error: nowhere-0: no success within 0.5 s: UNKNOWN_TOPIC_OR_PARTITION")
                assert said.endswith(": see `klamm topic list` and `klamm broker list`")
            said = await refused("topic", "describe", "nowhere", *bootstrap)
            assert said == "Error: there is no topic nowhere: see `klamm topic list`"
            said = await refused("reassignment", "execute", "--reassignment-json-file", str(plan), *bootstrap)
            assert said == "nowhere-0: refused: there is no partition nowhere-0"


# --- Ctrl-C -----------------------------------------------------------------------------------------------------


async def interrupt(process: trio.Process) -> str:
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    said = b"".join([part async for part in process.stdout])
    assert await process.wait() == INTERRUPTED, said.decode()
    assert b"Traceback" not in said, said.decode()
    return said.decode()


async def test_ctrl_c_ends_services_and_those_who_wait(zookeeper: str, tmp_path: Path) -> None:
    store = ("--zookeeper", f"{zookeeper}/ctrl-c")
    log_dir = ("--log-dir", str(tmp_path / "1"))
    async with (
        running("controller", "run", "--id", "1001", *store) as (controller, _),
        running("broker", "run", "--id", "1", "--port", "0", *log_dir, *store) as (broker, printed),
    ):
        bootstrap = ("--bootstrap-server", f"127.0.0.1:{port_of(printed)}")
        await trio.run_process([*KLAMM, "topic", "create", "t", *store], capture_stdout=True)
        await trio.run_process([*KLAMM, "produce", "t", *bootstrap], stdin=b"listens on\n", capture_stderr=True)
        async with running("consume", "t", "--follow", *bootstrap) as (consumer, said):
            assert said == "listens on\n"
            await interrupt(consumer)
        await interrupt(broker)
        await interrupt(controller)


@pytest.mark.soak  # `test_reassignments_page` ends such a waiting, too
async def test_ctrl_c_ends_the_waiting_for_a_move(zookeeper: str, tmp_path: Path) -> None:
    store = ("--zookeeper", f"{zookeeper}/ctrl-c-move")
    plan = tmp_path / "move.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}')
    brokers = [("broker", "run", "--id", id_, "--port", "0", "--log-dir", str(tmp_path / id_), *store) for id_ in "12"]
    async with (
        running("controller", "run", "--id", "1001", *store),
        running(*brokers[0]),
        running(*brokers[1]) as (slow, _),
    ):
        await trio.run_process(
            [*KLAMM, "topic", "create", "t", "--replica-assignment", "1", *store], capture_stdout=True
        )
        slow.send_signal(signal.SIGSTOP)  # it keeps its session for a while, and joins no ISR
        command = [*KLAMM, "reassignment", "execute", "--reassignment-json-file", str(plan), *store]
        waiting = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert waiting.stdout is not None
        said = b""
        while b"t-0 waits for broker 2 to join the ISR" not in said and (more := await waiting.stdout.receive_some()):
            said += more
        assert "t-0: not complete, continues by itself" in await interrupt(waiting)
        assert waiting.returncode == INTERRUPTED


async def test_ctrl_c_ends_the_development_zookeeper(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "this one tells that Java is there"
    async with running("zookeeper", "run", "--port", "0", "--data-dir", str(tmp_path)) as (process, _):
        await interrupt(process)


async def test_ctrl_c_ends_the_demo() -> None:
    command = [*KLAMM, "demo", "--store", "memory"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    await process.stdout.receive_some()  # the first line: it begins
    await interrupt(process)
    assert process.returncode == INTERRUPTED
