"""The way from any thread into one trio run."""

from __future__ import annotations

from collections.abc import Callable

import trio


class TrioEntry:
    """Leads into the trio run that it was made in; one that was made outside of trio must be bound to a run."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token() if trio.lowlevel.in_trio_run() else None

    def bind(self) -> None:
        """Lead into the trio run that calls this."""
        self._token = trio.lowlevel.current_trio_token()

    @property
    def is_inside(self) -> bool:
        """Whether the caller is in that trio run already."""
        return trio.lowlevel.in_trio_run() and self._token in {None, trio.lowlevel.current_trio_token()}

    def run_soon(self, function: Callable[[], object]) -> None:
        """Have trio call `function`, which must not raise; calls keep their order. Does nothing after trio's end."""
        if self._token is None:
            raise RuntimeError("a foreign thread came before it was bound to a trio run: call bind() in trio first")
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return
