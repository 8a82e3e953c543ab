"""The signals by which operators hold rollouts up: files on the hosts of controllers, and pages that they ask."""

from __future__ import annotations

import math

import trio
from attrs import define, field

from transport.messages import RolloutSettings
from transport.pages import ANSWER_SECONDS


@define
class Signals:
    """The signals of a simulated cluster. A page says yes unless it is broken."""

    _files: dict[str, float] = field(factory=dict, init=False)
    """The files that exist, and since when."""

    _broken: dict[str, float] = field(factory=dict, init=False)
    """The pages that say no, and since when."""

    _silent: set[str] = field(factory=set, init=False)
    """Those of them that do not answer."""

    def touch(self, path: str) -> None:
        """Create a file, unless it is there."""
        self._files.setdefault(path, trio.current_time())

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        self._files.pop(path, None)

    def break_page(self, url: str, *, is_silent: bool) -> None:
        """Let a page answer with an error, or not at all."""
        self._broken.setdefault(url, trio.current_time())
        if is_silent:
            self._silent.add(url)
        else:
            self._silent.discard(url)

    def mend_page(self, url: str) -> None:
        """Let a page say yes again."""
        self._broken.pop(url, None)
        self._silent.discard(url)

    def clear(self) -> None:
        """Let all signals say yes."""
        self._files.clear()
        self._broken.clear()
        self._silent.clear()

    def no_since(self, settings: RolloutSettings) -> float:
        """Return since when the signals of a rollout have said no; infinite if they say yes."""
        found = self._files.get(settings.pause_file, math.inf), self._broken.get(settings.go_url, math.inf)
        return min(found)

    async def has_file(self, path: str) -> bool:
        """Return whether a file is on the hosts of controllers."""
        await trio.lowlevel.checkpoint()
        return path in self._files

    async def page_fault(self, url: str) -> str | None:
        """Return why a page says no, None if it says yes."""
        if url in self._silent:
            await trio.sleep(ANSWER_SECONDS)
            return "does not answer: timed out"
        await trio.lowlevel.checkpoint()
        return "answers 503" if url in self._broken else None
