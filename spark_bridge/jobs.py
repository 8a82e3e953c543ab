"""Names of Spark's jobs: what its UI and its event log show beside each, and where that UI is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_bridge.progress import OnProgress, Progress, in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_CONNECT = ","
"""Characters that no tag of Spark Connect may have."""


class NamedJobs:
    """Names the jobs of a plan by what planning is doing.

    Args:
        group: What all jobs of the plan have in common.
        progress: Is told how far the plan is, as before.
    """

    def __init__(self, group: str, progress: OnProgress) -> None:
        self._group = group
        self._progress = progress
        self._last = Progress("starting")
        self._session: SparkSession | None = None
        self._tag: str | None = None

    def __call__(self, progress: Progress) -> None:
        """Tell how far the plan is, and name the jobs that follow."""
        self._last = progress
        self._name()
        self._progress(progress)

    def on(self, session: SparkSession) -> SparkSession:
        """Name the jobs of a session from now on, those of this thread; report its UI's address, once."""
        if self._session is None:
            self._session = session
            self._name()
            context = getattr(session, "_sc", None)
            if context is not None and context.uiWebUrl:
                self._progress(Progress(self._last.phase, ui=context.uiWebUrl))
        return session

    def end(self) -> None:
        """Leave the jobs of a session that others use, too, without a name."""
        if self._session is not None and getattr(self._session, "_sc", None) is None:
            self._session.clearTags()

    def _name(self) -> None:
        if self._session is None:
            return
        name = f"{self._group}: {in_words(self._last)}"
        context = getattr(self._session, "_sc", None)
        if context is not None:
            context.setJobGroup(self._group, name)
            return
        # Spark Connect has tags instead, which cancel nothing by themselves.
        if self._tag is not None:
            self._session.removeTag(self._tag)
        self._tag = name.replace(_OF_CONNECT, "")
        self._session.addTag(self._tag)
