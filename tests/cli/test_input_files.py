"""Files that commands read: a limit for each kind, and one line for each unusable file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from broker.meta_properties import WrongLogDir, load_storage_id
from klamm.cli import main
from klamm.cli.leaders import read_wanted
from klamm.cli.reassignment.files import read_document
from klamm.cli.settings import read_file
from simulator.scenario.loader import load
from tests.cli.devices import device
from tests.cli.shell import Shell, forks, run_klamm
from transport import input_files
from transport.metadata import TopicPartition
from transport.service_settings import SecuritySettings
from transport.store.protocol import StoreUnavailable
from transport.store.security import security_of

KLAMM = (sys.executable, "-m", "klamm")
MOVES = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
SNAPSHOT = b"""{"brokers": [{"id": 1, "host": "a", "port": 1, "rack": null},
{"id": 2, "host": "a", "port": 1, "rack": null}],
"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "leader": 1, "isr": [1],
"adding_replicas": [], "removing_replicas": []}]}"""
SCENARIO = Path(__file__).parents[2] / "examples" / "scenarios" / "broker_bounces.yaml"
BOM = b"\xef\xbb\xbf"

READERS = {
    "execute": ("reassignment", "execute", "--reassignment-json-file"),
    "verify": ("reassignment", "verify", "--reassignment-json-file"),
    "cancel": ("reassignment", "cancel", "--reassignment-json-file"),
    "elect": ("leader", "elect", "--election-type", "preferred", "--path-to-json-file"),
    "controller": ("controller", "run", "--id", "1001", "--config"),
    "broker": ("broker", "run", "--id", "1", "--config"),
    "simulate": ("simulate",),
}
"""Commands that read a file whole, and end with its name."""

LIMITS = {"execute": 64, "verify": 64, "cancel": 64, "elect": 64, "controller": 1, "broker": 1, "simulate": 4}


def missing(folder: Path) -> Path:
    return folder / "missing"


def a_folder(folder: Path) -> Path:
    (folder / "folder").mkdir()
    return folder / "folder"


def endless(folder: Path) -> Path:
    return device(folder, "zero")


def full(folder: Path) -> Path:
    return device(folder, "full")


def huge(folder: Path) -> Path:
    with (folder / "huge").open("wb") as file:
        file.truncate(10**12)
    return folder / "huge"


def not_utf8(folder: Path) -> Path:
    (folder / "latin1").write_bytes(b'# "\xfc"')
    return folder / "latin1"


def a_pipe_without_writer(folder: Path) -> Path:
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


def a_link_to_itself(folder: Path) -> Path:
    (folder / "link").symlink_to("link")
    return folder / "link"


MISTAKES: dict[Callable[[Path], Path], str] = {
    missing: "No such file or directory|does not exist",
    a_folder: "Is a directory|is a directory",
    endless: "larger than {limit} MB: ",
    full: "larger than {limit} MB: ",
    huge: "larger than {limit} MB: ",
    not_utf8: "not UTF-8: byte 3",
    a_pipe_without_writer: "nobody writes to this pipe",
    a_link_to_itself: "Too many levels of symbolic links|does not exist",
}


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "_LOOKS", 3)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("make", MISTAKES, ids=lambda make: make.__name__)
def test_a_file_that_cannot_be_read_is_told_in_one_line(
    reader: str, make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path)
    done = CliRunner().invoke(main, [*READERS[reader], str(path)])
    *_, line = done.output.splitlines()
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code in {1, 2}
    assert line.startswith("Error: ")
    assert str(path) in line
    assert any(fault in line for fault in MISTAKES[make].format(limit=LIMITS[reader]).split("|")), line


@pytest.mark.parametrize("reader", ["execute", "verify", "cancel", "elect"])
@pytest.mark.parametrize("content", [b"", b" \n", BOM])
def test_an_empty_document_is_told_to_be_empty(reader: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    done = CliRunner().invoke(main, [*READERS[reader], str(path)])
    assert (done.exit_code, done.output) == (1, f"Error: {path}: the file is empty\n")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(BOM + MOVES)
    assert read_document(path).targets == {TopicPartition("t", 0): (1,)}
    assert read_wanted(path).orders == {TopicPartition("t", 0): (1,)}
    path.write_bytes(BOM + b"[broker]\r\nport = 7\r\n")
    assert read_file(path, "broker") == {"port": 7}
    path.write_bytes(BOM + SCENARIO.read_bytes())
    assert len(load(path)) == len(load(SCENARIO))


@pytest.mark.parametrize(
    ("replaced", "by"),
    [
        (b":0,", b":1000000000000000000000000000000,"),
        (b":0,", b":2147483648,"),
        (b"[1]", b"[2147483648]"),
        (b"[1]", b"[-1]"),
        (b":0,", b":-1,"),
    ],
)
@pytest.mark.parametrize("reader", ["execute", "elect"])
def test_numbers_that_nobody_can_have_are_told_with_their_place(
    reader: str, replaced: bytes, by: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(MOVES.replace(replaced, by))
    done = CliRunner().invoke(main, [*READERS[reader], str(path)])
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {path}: partitions[0].")
    assert done.output.count("\n") == 1


# --- pipes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[MOVES], [MOVES[:9], MOVES[9:]], [b" " * 300_000, MOVES]])
def test_a_pipe_is_read_to_its_end_once_somebody_writes(pieces: list[bytes], tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def write() -> None:
        with fifo.open("wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_document(fifo).targets == {TopicPartition("t", 0): (1,)}
    writer.join()


def test_a_pipe_that_ends_at_once_is_empty() -> None:
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" <(true)', "bash", *KLAMM, *READERS["elect"]],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.endswith(": the file is empty\n")) == (1, True), done.stderr


async def test_moves_come_out_of_a_process_substitution(klamm: Shell) -> None:
    await klamm("topic", "create", "t", "--replica-assignment", "1:2:3")
    moves = MOVES.decode().replace("[1]", "[4,5,6]")
    shell = ["bash", "-c", f"exec \"$@\" <(echo '{moves}')", "bash", *KLAMM]
    command = [*shell, "reassignment", "execute", "--bootstrap-server", klamm.bootstrap, *READERS["execute"][2:]]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, b"t-0: complete" in done.stdout) == (0, True), done.stderr


# --- what services and planning read ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [missing, a_folder, endless, not_utf8], ids=lambda make: make.__name__)
def test_credentials_that_cannot_be_read(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(StoreUnavailable) as refused:
        security_of(SecuritySettings(zookeeper_credentials_file=str(path)), {})
    fault = MISTAKES[make].format(limit=1).split("|")[0]
    assert str(refused.value).startswith(f"zookeeper.credentials.file: cannot read {path}: {fault}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("make", [endless, not_utf8], ids=lambda make: make.__name__)
def test_a_log_dir_whose_owner_cannot_be_read(make: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "meta.properties").symlink_to(make(tmp_path))
    with pytest.raises(WrongLogDir, match=r"larger than 1 MB|not UTF-8"):
        load_storage_id([tmp_path], 1, lambda: "new")


def plan(snapshot: str, *options: str, redirection: str = "") -> subprocess.CompletedProcess[str]:
    command = [*KLAMM, "plan", "remove-brokers", "--brokers", "1", "--snapshot", snapshot, *options]
    if not redirection:
        forked = forks().run(command[len(KLAMM) :], cwd=Path.cwd(), text=b"", environment=dict(os.environ))
        return subprocess.CompletedProcess(command, forked.code, forked.stdout, forked.stderr)
    run = ["bash", "-c", f'exec "$@" {redirection}', "bash", *command]
    return subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)


def test_planning_reads_no_endless_line(tmp_path: Path) -> None:
    good, long = tmp_path / "good", tmp_path / "long"
    good.write_bytes(SNAPSHOT)
    with long.open("wb") as file:
        file.truncate(10**12)
    done = plan(str(good), "--loads", str(long))
    assert (done.returncode, done.stderr) == (1, f"Error: {long}: line 1: longer than 16 MB\n")
    done = plan(str(good), "--brokers-table", str(device(tmp_path, "null")))
    assert (done.returncode, done.stderr) == (1, f"Error: {tmp_path}/null: it is empty\n")


@pytest.mark.soak
def test_planning_reads_no_endless_value(tmp_path: Path) -> None:
    value = tmp_path / "value"
    with value.open("wb") as file:
        file.write(b'{"more": [')
        for _ in range(300):
            file.write(b"1," * (1 << 19))
    done = plan(str(value))
    fault = f"Error: {value}: line 1: not JSON: a value of more than 256 MB\n"
    assert (done.returncode, done.stderr) == (1, fault)


def test_planning_reads_pipes(tmp_path: Path) -> None:
    good, loads = tmp_path / "good", tmp_path / "loads"
    good.write_bytes(SNAPSHOT)
    loads.write_text("topic,partition,bytes\nt,0,1000\n")
    expected = plan(str(good), "--loads", str(loads))
    assert expected.returncode == 0
    piped = plan("/dev/fd/7", "--loads", "/dev/stdin", redirection=f"7< <(cat {good}) < {loads}")
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, expected.stdout, expected.stderr)
    broken = plan("/dev/stdin", redirection="< <(echo nonsense)")
    assert (broken.returncode, broken.stderr) == (
        1,
        "Error: /dev/stdin: not JSON: give the output of `klamm state dump`\n",
    )


async def test_a_way_back_is_not_read_without_limit(klamm: Shell, tmp_path: Path) -> None:
    """A file that is there is compared with the way back, and no more of it is read than that has."""
    await klamm("topic", "create", "t", "--replica-assignment", "1:2:3")
    (tmp_path / "moves.json").write_bytes(MOVES.replace(b"[1]", b"[4,5,6]"))
    command = ("reassignment", "execute", "--reassignment-json-file", str(tmp_path / "moves.json"))
    done = await run_klamm(*command, "--rollback-json-file", str(huge(tmp_path)), "--bootstrap-server", klamm.bootstrap)
    assert done.returncode == 1
    assert b"may be the rollback of an earlier move" in done.stderr
