"""Names of Spark's jobs, which its UI and event log show, and the address of that UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_bridge.progress import OnProgress, Progress, in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_CONNECT = ","
"""Characters that a tag of Spark Connect must not contain."""


class NamedJobs:
    """Names the jobs of a plan after the current phase.

    Args:
        group: The group of all jobs of the plan.
        progress: Called with the progress, unchanged.
    """

    def __init__(self, group: str, progress: OnProgress) -> None:
        self._group = group
        self._progress = progress
        self._last = Progress("starting")
        self._session: SparkSession | None = None
        self._tag: str | None = None

    def __call__(self, progress: Progress) -> None:
        """Report the progress, and name the jobs that follow."""
        self._last = progress
        self._name()
        self._progress(progress)

    def on(self, session: SparkSession) -> SparkSession:
        """Name the jobs that this thread starts in a session from now on; report its UI's address once."""
        if self._session is None:
            self._session = session
            self._name()
            context = getattr(session, "_sc", None)
            if context is not None and context.uiWebUrl:
                self._progress(Progress(self._last.phase, ui=context.uiWebUrl))
        return session

    def end(self) -> None:
        """Stop naming the jobs of a Spark Connect session, which others may use as well."""
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
        # Spark Connect has tags instead of groups; a tag alone cancels nothing.
        if self._tag is not None:
            self._session.removeTag(self._tag)
        self._tag = name.replace(_OF_CONNECT, "")
        self._session.addTag(self._tag)
