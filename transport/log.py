"""The loggers of all packages, which are silent until the program configures structlog.

A library must not print by itself into the output of the program that embeds it; structlog's default prints everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger


class _Silent(structlog.BoundLoggerBase):
    """A logger that drops everything."""

    def __getattr__(self, _method: str) -> Any:  # noqa: ANN401  a logger has any method
        return _drop


def _drop(*_args: object, **_fields: object) -> None:
    pass


def _bound(logger: Any, processors: Iterable[Any], context: Any) -> Any:  # noqa: ANN401  as structlog has it
    """Return the logger that the program configured; evaluated for each line, as it may configure structlog later."""
    wrapper: Any = structlog.get_config()["wrapper_class"] if structlog.is_configured() else _Silent
    return wrapper(logger, processors=processors, context=context)


def get_logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a module, silent until structlog is configured."""
    logger = structlog.wrap_logger(None, wrapper_class=cast("Any", _bound), logger_factory_args=(name,))
    return cast("FilteringBoundLogger", logger)
