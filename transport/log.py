"""The loggers of all packages: silent until the program configures structlog.

A library that prints by itself is in the way of the program that embeds it. structlog's own default prints everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger


class _Silent(structlog.BoundLoggerBase):
    """Drops what it is told, whatever the method."""

    def __getattr__(self, _method: str) -> Any:  # noqa: ANN401  a logger has any method
        return _drop


def _drop(*_args: object, **_fields: object) -> None:
    pass


def _bound(logger: Any, processors: Iterable[Any], context: Any) -> Any:  # noqa: ANN401  as structlog has it
    """Make the logger that the program asked for, asked anew for each line: it may configure structlog later."""
    wrapper: Any = structlog.get_config()["wrapper_class"] if structlog.is_configured() else _Silent
    return wrapper(logger, processors=processors, context=context)


def get_logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a module, which is silent while structlog is not configured."""
    logger = structlog.wrap_logger(None, wrapper_class=cast("Any", _bound), logger_factory_args=(name,))
    return cast("FilteringBoundLogger", logger)
