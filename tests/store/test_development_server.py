"""The ZooKeeper for development and tests."""

from __future__ import annotations

import importlib.util
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from transport.store.protocol import Create
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import DevelopmentServerError, development_zookeeper, find_jars, find_java

STARTER = """\
import sys, trio
from pathlib import Path
from transport.zookeeper_server import development_zookeeper

async def main():
    async with development_zookeeper(Path(sys.argv[1])) as server:
        print(server.port, flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


def fake_java(directory: Path, version: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ['openjdk version "17.0.15" 2025-04-15', 'java version "25" 2025-09-16'])
def test_java_17_or_later_is_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, version)
    monkeypatch.setenv("PATH", str(java.parent), prepend=":")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert find_java() == str(java)


def test_the_java_of_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path / "home", 'openjdk version "21.0.1" 2025-04-15')
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", 'openjdk version "17.0.15"').parent), prepend=":")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == str(java)


@pytest.mark.parametrize("version", ['java version "1.8.0_392"', 'openjdk version "11.0.2" 2019-01-15', "no java here"])
def test_an_older_java_is_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DevelopmentServerError) as caught:
        find_java()
    cure = "apt-get install openjdk-17-jre-headless"
    assert str(caught.value) == f"Java 17 or later is not installed ({java} is older): {cure}"


def test_ctrl_c_while_java_is_asked_is_no_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends SIGINT to the whole foreground group, of which the Java that is asked must not be one."""
    java = fake_java(tmp_path, 'openjdk version "17.0.15"')
    told = java.read_text()
    java.write_text(told.replace("\n", '\n[ "$(cut -d" " -f5 /proc/$$/stat)" -eq $$ ] || kill -INT $$\n', 1))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(java)


def test_a_missing_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(DevelopmentServerError, match=r"^Java 17 or later is not installed: apt-get install openjdk-17"):
        find_java()


def test_a_missing_pyspark_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(DevelopmentServerError, match=r"pip install 'klamm\[spark\]'$"):
        find_jars()


def test_finding_the_jars_does_not_import_pyspark() -> None:
    code = "import sys; from transport.zookeeper_server import find_jars; find_jars(); print('pyspark' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"


async def test_a_port_in_use_is_refused(zookeeper: str, tmp_path: Path) -> None:
    port = int(zookeeper.rpartition(":")[2])
    with pytest.raises(DevelopmentServerError, match=rf"^port {port} of 127.0.0.1 is not free"):
        async with development_zookeeper(tmp_path, port):
            pass


@pytest.mark.usefixtures("zookeeper")
async def test_a_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DevelopmentServerError, match=r"data \(Not a directory\): name another directory$"):
        async with development_zookeeper(tmp_path / "file" / "data"):
            pass


@pytest.mark.usefixtures("zookeeper")
async def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    in_use = f"another ZooKeeper runs in {tmp_path}: stop that one or name another directory"
    async with development_zookeeper(tmp_path):
        with pytest.raises(DevelopmentServerError, match=f"^{re.escape(in_use)}$"):
            async with development_zookeeper(tmp_path):
                pass


@pytest.mark.usefixtures("zookeeper")
async def test_a_server_that_cannot_start_names_its_log(tmp_path: Path) -> None:
    (tmp_path / "version-2").touch()
    with pytest.raises(DevelopmentServerError, match=r"^ZooKeeper ended with exit code \d+: see .*zookeeper.log$"):
        async with development_zookeeper(tmp_path):
            pass
    assert (tmp_path / "zookeeper.log").stat().st_size > 0


@pytest.mark.usefixtures("zookeeper")
async def test_data_outlives_the_server(tmp_path: Path) -> None:
    async with development_zookeeper(tmp_path) as server, open_zookeeper(server.address) as store:
        await store.multi([Create("/a", b"x")])
    async with development_zookeeper(tmp_path, server.port) as again, open_zookeeper(again.address) as store:
        (znode,) = await store.read(["/a"])
    assert znode is not None
    assert znode.data == b"x"
    with pytest.raises(OSError, match="all attempts to connect"):
        await trio.open_tcp_stream(again.host, again.port)


@pytest.mark.usefixtures("zookeeper")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process together with its parent")
def test_the_server_dies_with_who_started_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER, tmp_path], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        port = int(starter.stdout.readline())
        # Sooner than ZooKeeper itself closes a connection that opens no session.
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            starter.send_signal(signal.SIGKILL)
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
