"""The processor time of each test, and the tests and files that need most of it: a plugin of pytest.

The time of a test is that of its process and of all processes below it, fixtures included. Processes that go on running
are looked up in Linux's /proc, and only at the end of a test that took a while, because this takes a millisecond. So
what a shared ZooKeeper did for quick tests is charged to the next slower one. What the fixture of a session costs is
charged to the first test that asks for it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

LOOK_SECONDS: Final = 0.05
"""A test that took less real time than this starts no process worth looking for."""

_PROPERTY: Final = "processor seconds"
_PROC: Final = Path("/proc")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make test` gives."""
    parser.addoption("--slowest", type=int, default=0, metavar="N", help="list the N slowest tests and files")


def pytest_configure(config: pytest.Config) -> None:
    """Measure where the option is given; the workers of xdist are given it, too."""
    if listed := config.getoption("--slowest"):
        config.pluginmanager.register(_Stopwatch(listed))


class _Stopwatch:
    """Measures in the processes that run tests, and adds up in the one that prints."""

    def __init__(self, listed: int) -> None:
        self._listed = listed
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._took = 0.0
        self._own = 0.0
        self._below = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Note when a test begins."""
        self._took = 0.0
        self._own = _own_seconds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Add the time of a test to its last report, which xdist brings to the process that prints."""
        self._took += call.duration
        if call.when == "teardown":
            seconds = _own_seconds() - self._own
            if self._took > LOOK_SECONDS:
                before, self._below = self._below, _seconds_below(os.getpid())
                seconds += self._below - before
            item.user_properties.append((_PROPERTY, seconds))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up."""
        if report.when == "teardown":
            for name, value in report.user_properties:
                if name == _PROPERTY and isinstance(value, float):
                    self._seconds[report.nodeid] += value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print both lists."""
        files: defaultdict[str, float] = defaultdict(float)
        for nodeid, seconds in self._seconds.items():
            files[nodeid.partition("::")[0]] += seconds
        self._print(terminalreporter, "files", files)
        self._print(terminalreporter, "tests", self._seconds)

    def _print(self, terminalreporter: pytest.TerminalReporter, kind: str, seconds: Mapping[str, float]) -> None:
        total = sum(seconds.values())
        terminalreporter.section(f"slowest {kind}, by processor time: {total:,.0f} s in all")
        for name in sorted(seconds, key=seconds.__getitem__, reverse=True)[: self._listed]:
            share = seconds[name] / total if total else 0.0
            terminalreporter.line(f"{seconds[name]:7.2f} s  {share:5.1%}  {name}")


def _own_seconds() -> float:
    """Return the processor time of this process, and of those below it that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _seconds_below(pid: int) -> float:
    """Return the processor time of all processes below one that run; 0 on systems without Linux's /proc."""
    if not (_PROC / "self" / "stat").exists():
        return 0.0
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for process in _PROC.iterdir():
        if process.name.isdecimal():
            try:
                stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has just ended
                continue
            # The name in parentheses may have spaces. After it: the parent is field 4 of proc(5), times are 14 to 17.
            fields = stat.rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(process.name))
            ticks[int(process.name)] = sum(map(int, fields[11:15]))
    below = list(children.get(pid, ()))
    for child in below:
        below += children.get(child, ())
    return sum(ticks[child] for child in below) / os.sysconf("SC_CLK_TCK")
