"""Files that commands write: completely or not at all, and never instead of a device, a pipe or a link."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.cli.output_files import open_output, write_output
from tests.cli.devices import device, is_device
from tests.cli.shell import Shell, forks, run_klamm
from transport.store import paths
from transport.store.protocol import ensure_paths
from transport.store.zookeeper import open_zookeeper

KLAMM = (sys.executable, "-m", "klamm")
SNAPSHOT = """{"brokers": [{"id": 1, "host": "a", "port": 1, "rack": null},
{"id": 2, "host": "a", "port": 1, "rack": null}],
"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "leader": 1, "isr": [1],
"adding_replicas": [], "removing_replicas": []}]}"""
NEW = b"new\n"
NO_SPACE = "No space left on device"


def plan(tmp_path: Path, *options: str, redirection: str = "") -> subprocess.CompletedProcess[str]:
    """Plan a small move as a process; what stands in `redirection` follows as a shell understands it."""
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(SNAPSHOT)
    command = [*KLAMM, "plan", "remove-brokers", "--snapshot", str(snapshot), "--brokers", "1", *options]
    if not redirection:
        forked = forks().run(command[len(KLAMM) :], cwd=Path.cwd(), text=b"", environment=dict(os.environ))
        return subprocess.CompletedProcess(command, forked.code, forked.stdout, forked.stderr)
    run = ["bash", "-c", f'exec "$@" {redirection}', "bash", *command]
    return subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def heard_from(fifo: Path, write: Callable[[], None]) -> bytes:
    """Return what is read from a pipe while something writes."""
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(fifo.read_bytes()))
    reader.start()
    write()
    reader.join(60)
    return heard[0]


# --- what is there already --------------------------------------------------------------------------------------


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_output(tmp_path / "new", [NEW])
    assert (tmp_path / "new").read_bytes() == NEW
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert names(tmp_path) == ["new", "other"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_file_keeps_its_permissions_and_its_owner(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old, and longer than what is new")
    file.chmod(mode)
    if os.geteuid() == 0:
        os.chown(file, 1234, 4321)
    before = file.stat()
    write_output(file, [NEW])
    after = file.stat()
    assert file.read_bytes() == NEW
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (mode, before.st_uid, before.st_gid)


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "file").write_text("old")
    (tmp_path / "link").symlink_to("middle")
    (tmp_path / "middle").symlink_to(folder / "file")
    write_output(tmp_path / "link", [NEW])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert not (folder / "file").is_symlink()
    assert (folder / "file").read_bytes() == NEW
    assert names(folder) == ["file"]


def test_a_link_to_nothing_leads_to_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_output(tmp_path / "link", [NEW])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == NEW


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="symbolic links"):
        write_output(tmp_path / "link", [NEW])


def test_what_breaks_off_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    def break_off() -> None:
        with open_output(tmp_path / "file") as file:
            file.write(NEW * 100_000)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        break_off()
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(fifo)
    assert heard_from(fifo, lambda: write_output(fifo, [NEW] * 50_000)) == NEW * 50_000
    assert heard_from(fifo, lambda: write_output(tmp_path / "link", [NEW])) == NEW
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


def test_a_device_is_written_to(tmp_path: Path) -> None:
    null, full = device(tmp_path, "null"), device(tmp_path, "full")
    (tmp_path / "link").symlink_to(full)
    write_output(null, [NEW])
    for path in (full, tmp_path / "link"):
        with pytest.raises(OSError, match=NO_SPACE) as fault:
            write_output(path, [NEW])
        assert fault.value.filename == str(path)
    assert is_device(null)
    assert is_device(full)
    assert (tmp_path / "link").is_symlink()


# --- the commands -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_planning_leaves_devices_and_links_in_place(option: str, tmp_path: Path) -> None:
    more = ("--out", str(tmp_path / "plan")) if option == "--report" else ()
    full = device(tmp_path, "full")
    done = plan(tmp_path, option, str(full), *more)
    assert (done.returncode, done.stderr) == (1, f"Error: {full}: {NO_SPACE}\n")
    assert is_device(full)
    assert not (tmp_path / "plan").exists()
    (tmp_path / "file.json").write_text("old")
    (tmp_path / "link.json").symlink_to("file.json")
    assert plan(tmp_path, option, str(tmp_path / "link.json"), *more).returncode == 0
    assert (tmp_path / "link.json").is_symlink()
    assert len((tmp_path / "file.json").read_text()) > 50


def test_a_plan_goes_to_streams(tmp_path: Path) -> None:
    said = plan(tmp_path).stdout
    assert '"replicas":[2]' in said
    assert plan(tmp_path, "--out", "/dev/stdout").stdout == said
    log = tmp_path / "log"
    log.write_text("before\n")
    assert plan(tmp_path, "--out", "/dev/stdout", redirection=f">> {log}").returncode == 0
    assert log.read_text() == f"before\n{said}"
    copy = tmp_path / "copy"
    assert plan(tmp_path, "--out", "/dev/fd/7", redirection=f"7> >(cat > {copy})").returncode == 0
    assert copy.read_text() == said  # its stderr is ours, so it has ended, too
    assert names(tmp_path) == ["copy", "log", "snapshot.json"]


def test_a_plan_goes_to_an_empty_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    done = plan(tmp_path, "--out", str(tmp_path / "link"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "plan.json").exists()


@pytest.mark.parametrize("form", ["json", "jsonl"])
async def test_a_dump_leaves_devices_and_links_in_place(form: str, zookeeper: str, tmp_path: Path) -> None:
    async with open_zookeeper(f"{zookeeper}/devices") as store:
        await ensure_paths(store, [paths.BROKER_IDS])
    dump = ("state", "dump", "--zookeeper", f"{zookeeper}/devices", "--format", form)
    full = device(tmp_path, "full")
    done = await run_klamm(*dump, "--out", str(full))
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: {full}: {NO_SPACE}\n")
    assert is_device(full)
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    assert (await run_klamm(*dump, "--out", str(tmp_path / "link"))).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert '"controller"' in (tmp_path / "file").read_text()


async def test_a_way_back_leaves_devices_and_links_in_place(klamm: Shell, tmp_path: Path) -> None:
    await klamm("topic", "create", "t", "--replica-assignment", "1:2:3")
    moves = tmp_path / "moves.json"
    moves.write_text('{"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}')
    execute = ("reassignment", "execute", "--reassignment-json-file", str(moves), "--rollback-json-file")
    full, link = device(tmp_path, "full"), tmp_path / "link"
    said = await klamm(*execute, str(full), fails=True)
    assert said == f"Error: nothing was begun, because the rollback could not be written: {full}: {NO_SPACE}\n"
    assert is_device(full)
    assert "1,2,3" in await klamm("topic", "describe", "t")
    link.symlink_to("back.json")
    assert "t-0: complete" in await klamm(*execute, str(link))
    assert link.is_symlink()
    assert '"replicas":[1,2,3]' in (tmp_path / "back.json").read_text()
    said = await klamm(*execute, str(link), fails=True)
    assert "may be the rollback of an earlier move" in said
