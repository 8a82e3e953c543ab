"""Calls from any thread into a trio run."""

from __future__ import annotations

from collections.abc import Callable

import trio


class TrioEntry:
    """An entry into the trio run in which it was made. One that was made outside trio must be bound to a run."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token() if trio.lowlevel.in_trio_run() else None

    def bind(self) -> None:
        """Lead into the current trio run from now on."""
        self._token = trio.lowlevel.current_trio_token()

    @property
    def is_inside(self) -> bool:
        """Whether the caller is in that trio run, so that it needs no entry."""
        return trio.lowlevel.in_trio_run() and self._token in {None, trio.lowlevel.current_trio_token()}

    def run_soon(self, function: Callable[[], object]) -> None:
        """Have trio call `function`, which must not raise. Calls keep their order; they are dropped after trio ends."""
        if self._token is None:
            raise RuntimeError(
                "called from another thread before it was bound to a trio run: call bind() in trio first"
            )
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return
