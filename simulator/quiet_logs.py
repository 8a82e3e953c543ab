"""Drops the product's log at almost no cost, except for unexpected faults and for transitions that may not be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from traceback import format_exception_only, walk_tb
from typing import Final

from transport.log import stand_in

FRAMES: Final = 4

_ILLEGAL: Final = "illegal "


class InjectedFault(Exception):
    """An exception that a simulation raises on purpose, so that it is no fault of the product."""


OnFault = Callable[[str], None]
"""Called with one line: the logged event, and where the exception came from."""


class _Dropped:
    """A logger that handles only `exception`, and errors about illegal transitions of the state machines."""

    def __init__(self, on_fault: OnFault) -> None:
        self._on_fault = on_fault

    def debug(self, event: str, **_: object) -> None:
        """Drop a line."""

    info = warning = critical = debug

    def error(self, event: str, **context: object) -> None:
        """Report a transition that may not be, drop anything else."""
        if event.startswith(_ILLEGAL):
            self._on_fault(f"{event}: {' '.join(f'{name}={value}' for name, value in context.items())}")

    def exception(self, event: str, **_: object) -> None:
        """Report a fault, unless the simulation has raised it."""
        error = sys.exception()
        if isinstance(error, InjectedFault):
            return
        if error is None:
            self._on_fault(event)
            return
        frames = [f"{Path(frame.f_code.co_filename).name}:{line}" for frame, line in walk_tb(error.__traceback__)]
        text = "".join(format_exception_only(error)).strip()
        self._on_fault(f"{event}: {text} (at {' '.join(frames[-FRAMES:])})")


def ignore(text: str) -> None:
    """Drop a fault, too."""


def quiet_logs(on_fault: OnFault) -> AbstractContextManager[None]:
    """Drop the product's log within the block, and report faults to `on_fault`."""
    return stand_in(_Dropped(on_fault))
