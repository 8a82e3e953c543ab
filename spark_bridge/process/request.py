"""A request to plan: the goal, the inputs, and where planning runs, as JSON between two processes.

This module imports neither NumPy nor PySpark, so that a command line can make a request without loading them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from attrs import asdict, field, frozen

from spark_bridge.errors import PlanError
from spark_bridge.inputs.sources import Sources, Url, source_of
from spark_bridge.model.goal import Goal


class EngineName(StrEnum):
    """The engine that computes the plan; all engines make the same plan."""

    AUTO = "auto"  # the kernel up to a limit, Spark above it
    KERNEL = "kernel"
    SPARK = "spark"


@frozen
class PlanRequest:
    """A request to plan.

    Attributes:
        sources: The input files.
        goal: The goal.
        output: The folder for the plan's files. Workers write there, so on a cluster it must be one that all share.
        engine: The engine that computes the plan.
        master: Where Spark runs, in the format of `spark-submit --master`; None for this machine.
        remote: A Spark Connect server to use instead, such as sc://host:15002.
        timeout: The number of seconds after which to give up; None for no limit.
        conf: More settings for Spark, by name; they take precedence over the defaults.
    """

    sources: Sources
    goal: Goal
    output: str
    engine: EngineName = EngineName.AUTO
    master: str | None = None
    remote: str | None = None
    timeout: float | None = None
    conf: Mapping[str, str] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        """Reject invalid options.

        Raises:
            PlanError: Options do not fit together or are out of range.
        """
        if not self.output:
            raise PlanError("output must be a folder for the plan's files, and it is empty")
        if self.master is not None and self.remote is not None:
            raise PlanError("master and remote are two places for Spark to run: give one of them")
        if self.engine is EngineName.KERNEL and (self.master or self.remote):
            raise PlanError("the kernel engine runs without Spark: leave out master and remote, or choose engine spark")
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise PlanError(f"remote must be a Spark Connect address such as sc://host:15002, not {self.remote!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise PlanError(f"timeout must be a number of seconds above 0, not {self.timeout}")
        if self.urls and self.engine is EngineName.KERNEL:
            url = self.urls[0]
            raise PlanError(f"{url}: only Spark reads and writes {url.scheme}:// paths: leave out --engine kernel")
        if self.remote is not None and isinstance(output := source_of(self.output), Url):
            raise PlanError(
                f"{output}: a plan on a Spark Connect server cannot be written there: name a folder that its workers "
                "share, or plan with --master"
            )
        if strange := sorted(name for name in self.conf if not name.startswith("spark.")):
            raise PlanError(f"conf takes Spark's settings, whose names begin with 'spark.', not {strange[0]!r}")

    @property
    def urls(self) -> list[Url]:
        """Return the inputs and outputs that only Spark can reach."""
        output = source_of(self.output)
        return [*self.sources.urls, *([output] if isinstance(output, Url) else [])]

    @property
    def place(self) -> tuple[object, ...]:
        """Return what two requests must have in common to share a Spark session."""
        return self.master, self.remote, tuple(sorted(self.conf.items()))

    def to_json(self) -> bytes:
        """Return the request as one line of JSON for the bridge process.

        Raises:
            PlanError: A name in it cannot be written as UTF-8.
        """
        text = json.dumps(asdict(self), default=_plain, ensure_ascii=False)
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            strange = text[error.start : error.end]
            raise PlanError(f"{strange!a} in a name is not UTF-8: planning takes only names that are") from None


def _plain(value: object) -> object:
    """Return the JSON form of a value that the encoder does not support."""
    match value:
        case frozenset():
            return sorted(value)
        case Path():
            return str(value)
        case _:
            raise TypeError(f"{value!r} does not belong in a request")
