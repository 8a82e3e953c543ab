"""The loggers of all packages, which are silent until the program configures structlog.

A library must not print by itself into the output of the program that embeds it; structlog's default prints everything.
Nor is structlog imported here: it would be a quarter of the time that a command takes to start, and most log nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class _Logger:
    """A logger that drops everything unless the program has configured structlog, which it may do at any time."""

    stand_in: ClassVar[object | None] = None
    """The logger that takes the place of all of these, if any."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401  a logger has any method
        if _Logger.stand_in is not None:
            return getattr(_Logger.stand_in, method)
        # Who has not imported structlog has not configured it.
        structlog = sys.modules.get("structlog")
        if structlog is None or not structlog.is_configured():
            return _drop
        return getattr(structlog.get_logger(self._name), method)


def _drop(*_args: object, **_fields: object) -> None:
    pass


def get_logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a module, silent until structlog is configured."""
    return cast("FilteringBoundLogger", _Logger(name))


@contextmanager
def stand_in(logger: object) -> Iterator[None]:
    """Let a logger take the place of those of all modules within the block, whatever structlog's configuration."""
    before, _Logger.stand_in = _Logger.stand_in, logger
    try:
        yield
    finally:
        _Logger.stand_in = before
