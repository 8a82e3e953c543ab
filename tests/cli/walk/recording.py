"""What the commands of the session print, as the golden files keep it, and the documents that they print beside it."""

from __future__ import annotations

import re
import socket
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NoReturn

import click
import pytest
import trio
from attrs import define, field, frozen
from click.testing import CliRunner

from klamm.cli import main
from klamm.cli.planning import making
from spark_bridge.model.summary import Summary
from spark_bridge.process.request import PlanRequest
from spark_bridge.progress import OnProgress
from tests.cli.shell import run_klamm
from tests.cli.walk.commands import COMMANDS, FORMATTED, LOCAL, LOOKING
from tests.cli.walk.session import CONTROLLER, HANDOVER, KAFKA, PLANS, SESSION
from tests.cli.walk.stage import NAME, Stage
from tests.kit.kafka_registrations import begin_cluster, register
from tests.kit.officer import Officer, stand_as_kafka
from transport.metadata import Listener
from transport.store import paths
from transport.store.protocol import ensure_paths
from transport.store.zookeeper import open_zookeeper

GOLDEN: Final = Path(__file__).parent / "golden"
_STDIN: Final = b"first\nsecond\n"

_VARYING: Final = (
    (re.compile(r"127\.0\.0\.1:\d{5}(,127\.0\.0\.1:\d{5})*(/[\w-]+)?"), "127.0.0.1:PORT"),
    (re.compile(r'"port":\d{5}'), '"port":PORT'),
    # A narrow column has the day and the time on two lines.
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "2026-01-01"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "00:00:00"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms)\b"), "N s"),
    (re.compile(r"trace [0-9a-f]{32}"), "trace DIGEST"),
    (re.compile(r'("topic_id": ?)"[\w-]{22}"'), r'\1"ID"'),
    (re.compile(r"^(rate|left) +\S.*", re.MULTILINE), r"\1  VARIES"),
    # The progress of a rollout, which is printed as often as there is time for it.
    (re.compile(r"^\d+ of \d+ done, .*\n", re.MULTILINE), ""),
)


@frozen
class Call:
    """A call of a command, and what it prints."""

    words: str
    line: str
    stdout: str
    stderr: str
    code: int

    @property
    def text(self) -> str:
        """The call as a golden file keeps it."""
        stderr = "".join(f"! {text}\n" for text in self.stderr.splitlines())
        return f"\n$ klamm {self.line}\n{self.stdout}{stderr}exit {self.code}\n"


@define
class Recording:
    """Calls, and the documents of those that are made once more with `-o json`."""

    calls: list[Call] = field(factory=list)
    documents: list[Call] = field(factory=list)

    @property
    def texts(self) -> dict[str, str]:
        """The calls of each command as its golden file keeps them."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for call in self.calls:
            found[call.words].append(call.text)
        return {words: "".join(texts) for words, texts in found.items()}

    def add(self, line: str, done: subprocess.CompletedProcess[bytes]) -> None:
        """Add a call; one with `-o json` has a document as well."""
        out, err = (_settled(text.decode()) for text in (done.stdout, done.stderr))
        self.calls.append(Call(words_of(line), line, out, err, done.returncode))
        if line.endswith("-o json"):
            self.add_document(line, done)

    def add_document(self, line: str, done: subprocess.CompletedProcess[bytes]) -> None:
        """Add the document of a call."""
        self.documents.append(Call(words_of(line), line, done.stdout.decode(), done.stderr.decode(), done.returncode))


def words_of(line: str) -> str:
    """Return the words of the command in a line."""
    return max((words for words in COMMANDS if re.match(rf"{words}( |$)", line)), key=len)


def _changes_nothing(line: str) -> bool:
    """Return whether a call can be made twice."""
    is_tried = "--dry-run" in line or "--preserve-throttles" in line
    return is_tried or words_of(line) in {*LOOKING, *LOCAL}


def _in_json(line: str) -> str | None:
    """Return the call that prints the document, None if there is none; files go to another place."""
    if words_of(line) not in FORMATTED or not _changes_nothing(line) or line.endswith("-o json"):
        return None
    return f"{re.sub('--out ', '--out json-', line)} -o json"


def help_of(words: str) -> str:
    """Return the help of a command at 80 columns."""
    context = click.Context(main, info_name="klamm", help_option_names=["-h", "--help"], terminal_width=80)
    *groups, last = words.split()
    for word in groups:
        context = click.Context(main, parent=context, info_name=word)
    # click remembers the option of the first context in which a command was asked, a test's perhaps.
    COMMANDS[words]._help_option = None  # noqa: SLF001
    inner = click.Context(COMMANDS[words], parent=context, info_name=last, terminal_width=80)
    return f"$ klamm {words} --help\n{COMMANDS[words].get_help(inner)}\n"


async def record_session(stage: Stage, *, with_documents: bool) -> Recording:
    """Run the session on a cluster."""
    found = Recording()
    for step in SESSION:
        if isinstance(step, str):
            has_place = step.startswith("simulate") or "--profile" in step
            at = () if has_place else ("--bootstrap-server", stage.bootstrap)
            await _record(found, step, at, with_documents=with_documents)
        else:
            await step(stage)
    return found


async def _record(found: Recording, line: str, at: Sequence[str], *, with_documents: bool) -> None:
    done = await _run(line, at)
    found.add(line, done)
    in_json = _in_json(line) if with_documents else None
    # A command that ends with an error line has no document.
    if in_json is not None and (done.stdout or not done.returncode):
        found.add_document(line, await _run(in_json, at))


async def _run(line: str, at: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return await run_klamm(*_given(line), *at, stdin=_STDIN, whole=True)


def _given(line: str) -> list[str]:
    return line.format(name=NAME).split()


def record_plans(*, with_documents: bool) -> Recording:
    """Make the plans in this process: another one for each would take most of their time."""
    found = Recording()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "compute_plan", _compute_here)
        for line in PLANS:
            found.add(line, invoked(line))
            in_json = _in_json(line) if with_documents else None
            if in_json is not None and "--out" in line:
                found.add_document(line, invoked(in_json))
    return found


async def _compute_here(request: PlanRequest, progress: OnProgress) -> Summary:
    # It loads NumPy and PyArrow, which other tests of the walk do not need.
    from spark_bridge.planning import run_plan  # noqa: PLC0415

    await trio.lowlevel.checkpoint()
    return run_plan(request, progress, _no_spark)


def _no_spark() -> NoReturn:
    pytest.fail("a small plan needs no Spark")


def invoked(line: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process."""
    done = CliRunner().invoke(main, [*_given(line), *more], prog_name="klamm")
    return subprocess.CompletedProcess([], done.exit_code, done.stdout_bytes, done.stderr_bytes)


async def record_handover(address: str, *, with_documents: bool) -> Recording:
    """Hand the office over and back on a ZooKeeper, at an address with a chroot that is not used yet."""
    found = Recording()
    async with open_zookeeper(address) as store, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        await begin_cluster(store)
        await register(store, KAFKA, Listener("PLAINTEXT", "127.0.0.1", 1))
        await nursery.start(Officer(store, CONTROLLER).run)
        nursery.start_soon(stand_as_kafka, store, KAFKA)
        for line in HANDOVER:
            await _record(found, line, ("--zookeeper", address), with_documents=with_documents)
        nursery.cancel_scope.cancel()
    return found


def kept_calls(words: str) -> list[Call]:
    """Return the calls in the golden file of a command."""
    text = (GOLDEN / f"{words.replace(' ', '-')}.txt").read_text(encoding="utf-8")
    return [_parsed(words, call.splitlines()) for call in text.split("\n$ klamm ")[1:]]


def _parsed(words: str, lines: Sequence[str]) -> Call:
    line, *printed, end = lines
    out = [text for text in printed if not text.startswith("! ")]
    err = [text.removeprefix("! ") for text in printed if text.startswith("! ")]
    return Call(words, line, _joined(out), _joined(err), int(end.removeprefix("exit ")))


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _settled(text: str) -> str:
    """Return a text without what differs from run to run."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    host = f" on {socket.gethostname()}"
    if host in text:
        # The width of the table depends on the name of the host.
        text = re.sub("─+", "───", text.replace(host, " on HOST"))
    return text
