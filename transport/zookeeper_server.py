"""A ZooKeeper for development and tests, run from the jars that come with PySpark.

It listens on 127.0.0.1 only (with TLS on another port, if requested), trades durability for speed (no fsync), and ends
with the process that started it. It needs Java 17 or later.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from transport.child_process import spawn

HOST: Final = "127.0.0.1"
MIN_JAVA: Final = 17
TICK_MS: Final = 500
LOG_NAME: Final = "zookeeper.log"
LOCK_NAME: Final = ".lock"
START_SECONDS: Final = 60
ANSWER_SECONDS: Final = 0.5
STOP_SECONDS: Final = 5
POLL_SECONDS: Final = 0.05

_JARS: Final = (
    "zookeeper-*.jar",
    "slf4j-api-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "netty-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-cli-*.jar",
    "commons-io-*.jar",
    "jackson-*.jar",
)
HEAP: Final = "512m"
_JVM_OPTIONS: Final = ("-XX:+UseSerialGC", "-Dorg.apache.logging.log4j.level=WARN")


class DevelopmentServerError(Exception):
    """The development ZooKeeper cannot run; the message is one line with the reason and the cure."""


@frozen
class ServerTls:
    """The server's PEM files: its key with its certificate, and the authorities that sign clients' certificates.

    TLS needs Netty on the class path, which comes with PySpark.
    """

    keystore: Path
    truststore: Path


@frozen
class DevelopmentServer:
    """A running development ZooKeeper."""

    host: str
    port: int
    pid: int
    secure_port: int | None = None

    @property
    def address(self) -> str:
        """The address for clients, as host:port."""
        return f"{self.host}:{self.port}"

    @property
    def secure_address(self) -> str:
        """The address for clients with TLS, as host:port, if the server has TLS."""
        return f"{self.host}:{self.secure_port}"


def find_jars() -> list[Path]:
    """Find the server's jars in the installed PySpark, without importing it.

    Raises:
        DevelopmentServerError: PySpark is not installed, or contains no ZooKeeper.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        directory = Path(spec.origin).parent / "jars"
        if any(directory.glob("zookeeper-*.jar")):
            return sorted(jar for pattern in _JARS for jar in directory.glob(pattern))
    raise DevelopmentServerError("the development ZooKeeper comes in PySpark's jars: pip install 'klamm[spark]'")


def find_java() -> str:
    """Find a Java 17 or later: that of JAVA_HOME, else the first on PATH.

    Raises:
        DevelopmentServerError: There is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else None
    java = java or shutil.which("java")
    if java is None or _java_version(java) < MIN_JAVA:
        found = f" ({java} is older)" if java else ""
        raise DevelopmentServerError(
            f"Java {MIN_JAVA} or later is not installed{found}: apt-get install openjdk-17-jre-headless"
        )
    return java


def _java_version(java: str) -> int:
    # In a session of its own: otherwise Ctrl-C would end Java as well, which would then seem to be too old.
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, start_new_session=True)
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr)
    return int(match[1]) if match else 0


@asynccontextmanager
async def development_zookeeper(
    data_dir: Path, port: int = 0, *, tls: ServerTls | None = None, heap: str = HEAP
) -> AsyncIterator[DevelopmentServer]:
    """Run a ZooKeeper with its data, configuration and log in `data_dir` until the block ends.

    Args:
        data_dir: Created if missing; data of an earlier run is served again.
        port: On 127.0.0.1; 0 for any free port.
        tls: To listen with TLS as well, on another free port.
        heap: The most memory for its data, as Java's -Xmx takes it; a million znodes need about 500 MB.

    Raises:
        DevelopmentServerError: It cannot run, does not answer, or another one runs in `data_dir`.
    """
    with _sole_user(data_dir):
        port = free_port(port)
        secure_port = None if tls is None else free_port()
        config = write_config(data_dir, port, _tls_settings(tls, secure_port))
        log = data_dir / LOG_NAME
        process = spawn_server("org.apache.zookeeper.server.ZooKeeperServerMain", config, log, heap)
        try:
            await wait_until_serving(process, port, log, secure_port)
            yield DevelopmentServer(HOST, port, process.pid, secure_port)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(stop_server, process)


@contextmanager
def _sole_user(data_dir: Path) -> Iterator[None]:
    """Lock a directory for the block, at most until this process ends, because two servers would mix their data.

    Raises DevelopmentServerError if the directory is not writable, or another process has locked it.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / LOCK_NAME).open("w")
    except OSError as error:
        raise DevelopmentServerError(f"cannot write to {data_dir} ({error.strerror}): name another directory") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevelopmentServerError(
                f"another ZooKeeper runs in {data_dir}: stop that one or name another directory"
            ) from None
        yield


def spawn_server(main: str, config: Path, log: Path, heap: str = HEAP) -> subprocess.Popen[bytes]:
    """Start a main class of ZooKeeper. Raises DevelopmentServerError if Java or ZooKeeper is missing."""
    java, classpath = find_java(), os.pathsep.join(map(str, find_jars()))
    return spawn([java, f"-Xmx{heap}", *_JVM_OPTIONS, "-cp", classpath, main, str(config)], log)


def free_port(port: int = 0) -> int:
    """Return `port`, or any port for 0, if it is free on 127.0.0.1. Raises DevelopmentServerError if it is not."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise DevelopmentServerError(
                f"port {port} of {HOST} is not free ({error.strerror}): name another"
            ) from None
        return int(probe.getsockname()[1])


def write_config(data_dir: Path, port: int, more: Mapping[str, object]) -> Path:
    """Write a server's configuration, including `more`, and return its path. Raises DevelopmentServerError."""
    settings = {
        "dataDir": data_dir.absolute(),
        "clientPortAddress": HOST,
        "clientPort": port,
        "tickTime": TICK_MS,
        "maxSessionTimeout": 60_000,
        "maxClientCnxns": 0,
        "forceSync": "no",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr,ruok",
        **more,
    }
    path = data_dir / "zoo.cfg"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    except OSError as error:
        raise DevelopmentServerError(f"cannot write {path} ({error.strerror}): name another directory") from None
    return path


def _tls_settings(tls: ServerTls | None, port: int | None) -> dict[str, object]:
    if tls is None:
        return {}
    return {
        "secureClientPortAddress": HOST,
        "secureClientPort": port,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": tls.keystore.absolute(),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": tls.truststore.absolute(),
        "ssl.trustStore.type": "PEM",
    }


async def wait_until_serving(
    process: subprocess.Popen[bytes], port: int, log: Path, secure_port: int | None = None
) -> None:
    """Wait until a server answers at its port, and listens at the one with TLS, which it opens later.

    Raises DevelopmentServerError if the server ends or takes too long.
    """
    with trio.move_on_after(START_SECONDS):
        while process.poll() is None:
            if await _answers(port) and (secure_port is None or await _listens(secure_port)):
                return
            await trio.sleep(POLL_SECONDS)
        raise DevelopmentServerError(f"ZooKeeper ended with exit code {process.returncode}: see {log}")
    raise DevelopmentServerError(f"ZooKeeper did not answer within {START_SECONDS} s: see {log}")


async def _answers(port: int) -> bool:
    """Return whether the server answers `srvr`; its port is open before that."""
    answer = b""
    # A server that is starting leaves some requests unanswered.
    with suppress(OSError, trio.BrokenResourceError), trio.move_on_after(ANSWER_SECONDS):
        async with await _connect(port) as stream:
            await stream.send_all(b"srvr")
            answer = b"".join([part async for part in stream])
    return b"Mode: " in answer


async def _listens(port: int) -> bool:
    """Return whether something listens at a port."""
    try:
        async with await _connect(port):
            return True
    except OSError:
        return False


async def _connect(port: int) -> trio.SocketStream:
    """Connect to a server. Raises OSError if nothing listens.

    The kernel may then connect a socket to itself, which would occupy the server's port.
    """
    stream = await trio.open_tcp_stream(HOST, port)
    if stream.socket.getsockname()[1] == port:
        await stream.aclose()
        raise ConnectionRefusedError(f"only this socket is at port {port}")
    return stream


def stop_server(process: subprocess.Popen[bytes]) -> None:
    """Stop a server, with SIGKILL if it takes too long. Blocks the thread."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
