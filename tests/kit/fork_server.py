"""A process that has imported all of `klamm`, and becomes it, in a fork, for each command line that it is sent.

Its exit code, what it prints, and tracebacks are those of a process of its own, which takes a second to start here
where a fork takes a hundredth of it. A fork may also be a service, which is sent signals and waited for by its pid.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from select import select
from tempfile import TemporaryFile
from typing import IO, Any, Final, NoReturn

from attrs import frozen

LONGEST_SECONDS: Final = 20
"""After that a command is killed, and its exit code is -SIGALRM."""

MOST_BYTES: Final = 2 * 1024**3
"""The memory that a command may take, so that an endless read fails before the machine does."""

Environment = Mapping[str, str] | None

_OF_ROOT: Final = "-dac_override,-dac_read_search"


@frozen
class Done:
    """The outcome of a command line."""

    code: int
    stdout: str
    stderr: str


@frozen
class ForkServer:
    """Runs command lines in forks of a process; threads may run several at once."""

    _socket: socket.socket
    _seconds: int
    _bytes: int

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        text: bytes,
        stdin: str | None = None,
        stdout: str | None = None,
        stderr: str | None = None,
        environment: Environment = None,
    ) -> Done:
        """Run `klamm` with these arguments; its streams are files in `cwd`, or else its stdin has a text."""
        limits = {"seconds": self._seconds, "bytes": self._bytes}
        job = {"words": words, "cwd": str(cwd), "stdin": stdin, "environment": environment, **limits}
        ours, theirs = socket.socketpair()
        with ours, theirs, TemporaryFile() as given, _file(cwd, stdout) as out, _file(cwd, stderr) as err:
            given.write(text)
            given.seek(0)
            socket.send_fds(self._socket, [b"."], [file.fileno() for file in (theirs, given, out, err)])
            theirs.close()
            ours.sendall(json.dumps(job).encode() + b"\n")
            code = _received(ours)
            return Done(code, _text_of(out), _text_of(err))

    def start(self, words: Sequence[str], log: Path) -> Fork:
        """Start `klamm` with these arguments as a service, which appends its output to `log` and has no limits."""
        with Path(os.devnull).open("rb") as given, log.open("ab") as out:
            return self.start_module("klamm", words, (given.fileno(), out.fileno(), out.fileno()), os.environ)

    def start_module(
        self, module: str, words: Sequence[str], streams: tuple[int, int, int], environment: Mapping[str, str]
    ) -> Fork:
        """Start a module as a service, with descriptors for its stdin, stdout and stderr, and without limits."""
        limits = {"seconds": 0, "bytes": resource.RLIM_INFINITY}
        job = {"module": module, "words": words, "cwd": str(Path.cwd()), "stdin": None, **limits}
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._socket, [b"."], [theirs.fileno(), *streams])
        ours.sendall(json.dumps({**job, "environment": dict(environment), "serves": True}).encode() + b"\n")
        return Fork(words, ours)


class Fork(subprocess.Popen[bytes]):
    """A service that is a fork of the server, used as if it had been started by this process."""

    def __init__(self, words: Sequence[str], channel: socket.socket) -> None:
        self.args = list(words)
        self.returncode = None
        self._channel = channel
        self.pid = _received(channel)

    def poll(self) -> int | None:
        """Return the exit code if the service has ended."""
        if self.returncode is None and select([self._channel], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the service has ended. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select([self._channel], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._end()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal to the service if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def _end(self) -> None:
        if self.returncode is None:
            self.returncode = _received(self._channel)
            self._channel.close()


def _tell(channel: socket.socket, number: int) -> None:
    channel.sendall(f"{number:16}".encode())


def _received(channel: socket.socket) -> int:
    return int(channel.recv(16, socket.MSG_WAITALL))


def _file(folder: Path, name: str | None) -> IO[bytes]:
    return TemporaryFile() if name is None else (folder / name).open("wb")


def _text_of(file: IO[bytes]) -> str:
    if not file.readable():
        return ""
    file.seek(0)
    return file.read().decode(errors="surrogateescape")


def may_refuse_root() -> bool:
    """Return whether commands can be refused what others than root are refused."""
    return bool(os.geteuid()) or shutil.which("setpriv") is not None


@contextmanager
def fork_server(
    environment: Mapping[str, str],
    *,
    seconds: int = LONGEST_SECONDS,
    most_bytes: int = MOST_BYTES,
    as_root: bool = False,
    imports: Sequence[str] = (),
) -> Iterator[ForkServer]:
    """Start one, whose commands have these limits, and root's rights only on demand; it ends with the block.

    It imports more modules for its forks: those of `imports`.
    """
    # Root may do everything, and is refused what others are only without these of its capabilities.
    refuses = not as_root and may_refuse_root() and not os.geteuid()
    without_root = ("setpriv", f"--bounding-set={_OF_ROOT}") if refuses else ()
    ours, theirs = socket.socketpair()
    command = [*without_root, sys.executable, "-P", str(Path(__file__)), str(theirs.fileno()), *imports]
    with ours, theirs:
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(environment))
        theirs.close()
        try:
            yield ForkServer(ours, seconds, most_bytes)
        finally:
            ours.close()
            process.wait()


# --- in the process ---------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> str:
    """Fork for each request; return in a fork the module that it is to become, and end when there are no more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries those that wait for commands
    while files := socket.recv_fds(requests, 1, 4)[1]:
        if not os.fork():
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _wait_for_command(*files)
        for file in files:
            os.close(file)
    sys.exit()


def _wait_for_command(answer: int, *files: int) -> str:
    """Fork once more; return its module in this fork, and end the other with the command's exit code as the answer."""
    with socket.socket(fileno=answer) as caller:
        job = json.loads(caller.makefile("rb").readline())
        if child := os.fork():
            if job.get("serves"):
                _die_with_parent()
                _tell(caller, child)
            _, status = os.waitpid(child, 0)
            _tell(caller, os.waitstatus_to_exitcode(status))
            os._exit(0)
    _take_place(job, files)
    if job.get("serves"):
        _die_with_parent()
        os.setsid()
    return str(job.get("module", "klamm"))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _take_place(job: dict[str, Any], files: Sequence[int]) -> None:
    os.chdir(job["cwd"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if job["stdin"]:
        opened = os.open(job["stdin"], os.O_RDONLY)
        os.dup2(opened, 0)
        os.close(opened)
    sys.argv[1:] = job["words"]
    if job["environment"] is not None:
        os.environ.clear()
        os.environ.update(job["environment"])
    signal.alarm(job["seconds"])
    resource.setrlimit(resource.RLIMIT_AS, (job["bytes"], job["bytes"]))


def _import_all(more: Sequence[str]) -> None:
    import click  # noqa: PLC0415

    from klamm.cli import main  # noqa: PLC0415

    context = click.Context(main)
    for name in main.list_commands(context):
        main.get_command(context, name)
    for module in ("simulator.scenario.runner", "klamm.cli.plan_report", "yaml", *more):
        import_module(module)


def _become(module: str) -> NoReturn:
    """Run a module as `python -m` does.

    At its end the interpreter does not take all of its modules apart, which would take longer than most commands.
    """
    code: object = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  what Python prints of it is what is tested
        code = 1
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else code is not None)


if __name__ == "__main__":
    _import_all(sys.argv[2:])
    gc.freeze()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
