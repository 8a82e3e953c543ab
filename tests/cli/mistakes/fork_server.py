"""A process that has imported all of `klamm`, and becomes it, in a fork, for each command line that it is sent.

Its exit code, what it prints, and tracebacks are those of a process of its own, which takes a second to start here
where a fork takes a hundredth of it.
"""

from __future__ import annotations

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
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

from attrs import frozen

LONGEST_SECONDS: Final = 20
"""After that a command is killed, and its exit code is -SIGALRM."""

MOST_BYTES: Final = 2 * 1024**3
"""The memory that a command may take, so that an endless read fails before the machine does."""


_OF_ROOT: Final = "-dac_override,-dac_read_search"


@frozen
class Done:
    """The outcome of a command line."""

    code: int
    stdout: str
    stderr: str


@frozen
class ForkServer:
    """Runs command lines in forks of a process."""

    _socket: socket.socket
    _scratch: Path

    def run(self, words: Sequence[str], *, cwd: Path, stdin: str | None, text: bytes) -> Done:
        """Run `klamm` with these arguments; its stdin is a file in `cwd`, or has a text."""
        given, out, err = (self._scratch / name for name in ("stdin", "stdout", "stderr"))
        given.write_bytes(text)
        job = {"words": words, "cwd": str(cwd), "files": [stdin or str(given), str(out), str(err)]}
        self._socket.sendall(json.dumps(job).encode() + b"\n")
        code = int(self._socket.recv(16))
        return Done(code, *(file.read_text(encoding="utf-8", errors="surrogateescape") for file in (out, err)))


def may_refuse_root() -> bool:
    """Return whether commands can be refused what others than root are refused."""
    return bool(os.geteuid()) or shutil.which("setpriv") is not None


@contextmanager
def fork_server(scratch: Path, environment: Mapping[str, str]) -> Iterator[ForkServer]:
    """Start one; it ends with the block."""
    # Root may do everything, and is refused what others are only without these of its capabilities.
    without_root = ("setpriv", f"--bounding-set={_OF_ROOT}") if may_refuse_root() and not os.geteuid() else ()
    ours, theirs = socket.socketpair()
    command = [*without_root, sys.executable, str(Path(__file__)), str(theirs.fileno())]
    with ours, theirs:
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(environment))
        theirs.close()
        try:
            yield ForkServer(ours, scratch)
        finally:
            ours.close()
            process.wait()


# --- in the process ---------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> None:
    """Fork for each line; return in a fork when it is to become the command, and for good when there are no more."""
    with requests.makefile("rb") as lines:
        for line in lines:
            child = os.fork()
            if not child:
                requests.detach()
                _take_place(json.loads(line))
                return
            _, status = os.waitpid(child, 0)
            requests.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    sys.exit()


def _take_place(job: dict[str, Any]) -> None:
    os.chdir(job["cwd"])
    for number, (file, flags) in enumerate(zip(job["files"], _FLAGS, strict=True)):
        opened = os.open(file, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv[1:] = job["words"]
    signal.alarm(LONGEST_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


_FLAGS: Final = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_TRUNC] * 2)


def _import_all() -> None:
    import click  # noqa: PLC0415

    from klamm.cli import main  # noqa: PLC0415

    context = click.Context(main)
    for name in main.list_commands(context):
        main.get_command(context, name)
    for module in ("simulator.scenario.runner", "klamm.cli.plan_report", "yaml"):
        import_module(module)


def _become_klamm() -> NoReturn:
    """Run the command as `python -m klamm` does.

    At its end the interpreter does not take all of its modules apart, which would take longer than most commands.
    """
    code: object = 0
    try:
        runpy.run_module("klamm", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  what Python prints of it is what is tested
        code = 1
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else code is not None)


if __name__ == "__main__":
    _import_all()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _become_klamm()
