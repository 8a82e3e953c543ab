"""Common parts of commands: async code with one-line errors, services that stop on signals, logs."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import click
import trio
from click.core import ParameterSource

from controller.admin.active_controller import ClusterUnreachable
from controller.node.controller_election import ForeignCluster
from klamm.cli.streams import is_dumb_terminal, line_of
from klamm.interrupts import INTERRUPTED
from transport import addresses
from transport.addresses import Address
from transport.errors import ApiError, in_words
from transport.security.errors import SecurityError
from transport.settings import INT_MAX
from transport.store.formats import UndecodableZnode
from transport.store.protocol import StoreError
from transport.wire import WireError
from transport.zookeeper_server import DevelopmentServerError

if TYPE_CHECKING:
    from structlog.typing import EventDict

T = TypeVar("T")

_CAUSED_BY_USERS: Final[tuple[type[Exception], ...]] = (
    ApiError,
    ClusterUnreachable,
    DevelopmentServerError,
    ForeignCluster,
    OSError,
    SecurityError,
    StoreError,
    UndecodableZnode,
    WireError,
)
MAX_SECONDS: Final = INT_MAX // 1000
"""The longest waiting time, 24 days: requests carry it as milliseconds in 32 bits."""


def run(work: Callable[[], Awaitable[T]], *expected: type[Exception]) -> T:
    """Run `work` in trio. Errors that a user can cause, and `expected`, become one line on stderr and exit code 1.

    Ctrl-C interrupts `work` only where it waits. Raised between the two lines that open a cancel scope, it would leave
    the scope open, and a traceback on the screen.
    """
    try:
        return trio.run(work, restrict_keyboard_interrupt_to_checkpoints=True)
    except BaseException as error:
        cause = _only_leaf(error)
        if isinstance(cause, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        # The reader of the output has closed the pipe: `streams` ends the command quietly.
        if isinstance(cause, BrokenPipeError):
            raise cause from None
        if isinstance(cause, _CAUSED_BY_USERS + expected):
            raise click.ClickException(_line(cause)) from error
        if isinstance(cause, click.ClickException):
            raise cause from None
        raise


def trouble_of(error: Exception) -> str | None:
    """Return the line that `run` prints for an error, None for one that no user can cause."""
    cause = _only_leaf(error)
    if isinstance(cause, click.ClickException):
        return cause.format_message()
    return _line(cause) if isinstance(cause, _CAUSED_BY_USERS) else None


def _line(error: Exception) -> str:
    return line_of(error) if isinstance(error, OSError) else in_words(error)


def _only_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def until_signal(scope: trio.CancelScope) -> None:
    """Cancel `scope` at SIGINT or SIGTERM, so that running work ends cleanly."""
    await _first_signal(None)
    scope.cancel()


async def until_stopped(scope: trio.CancelScope, leave: Callable[[], Awaitable[None]] | None = None) -> None:
    """End a service cleanly: cancel `scope` at SIGTERM, raise KeyboardInterrupt at SIGINT.

    `leave` runs before that, until it returns or a second signal arrives.
    """
    if await _first_signal(leave) == signal.SIGINT:
        raise KeyboardInterrupt
    scope.cancel()


async def until_interrupted() -> None:
    """Raise KeyboardInterrupt at SIGINT or SIGTERM, so that work in the same nursery is cancelled and can clean up."""
    await _first_signal(None)
    raise KeyboardInterrupt


async def _first_signal(leave: Callable[[], Awaitable[None]] | None) -> int:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        first = await anext(signals)
        if leave is not None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_at_next, signals, nursery.cancel_scope)
                await leave()
                nursery.cancel_scope.cancel()
        return first


async def stoppable(work: Callable[[], Awaitable[None]]) -> bool:
    """Run `work` to its end, or until SIGINT or SIGTERM; return whether it was stopped."""
    is_over = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_signal, nursery.cancel_scope)
        await work()
        is_over = True
        nursery.cancel_scope.cancel()
    return not is_over


async def _cancel_at_next(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()


def is_given(option: str, context: click.Context | None = None) -> bool:
    """Return whether an option is on the command line of the running command, or of one that is half-written."""
    return (context or click.get_current_context()).get_parameter_source(option) is ParameterSource.COMMANDLINE


def log_level_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option for the lowest level to log; the command receives one of the numbers of `logging`."""

    def number(_context: click.Context, _option: click.Parameter, name: str) -> int:
        return logging.getLevelNamesMapping()[name.upper()]

    levels = click.Choice(["debug", "info", "warning", "error"])
    return click.option(
        "--log-level", type=levels, default="info", show_default=True, callback=number, help="The lowest level to log."
    )(command)


def _put_cause_first(_logger: object, _method: str, line: EventDict) -> EventDict:
    """Put the id and the name of the event that a line is about at its beginning."""
    return {name: line[name] for name in ("event_id", "during", "caused_by") if name in line} | dict(line)


def configure_logs(level: int = logging.INFO) -> None:
    """Log to stderr, one line per event; colours only on a terminal that supports them."""
    import structlog

    colours = sys.stderr.isatty() and not is_dumb_terminal()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _put_cause_first,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=0, sort_keys=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")


def _patience(_context: click.Context, _option: click.Parameter, seconds: float | None) -> float | None:
    if seconds is None:
        return None
    if not seconds > 0:
        raise click.BadParameter(f"{seconds:g} is not a number of seconds above 0")
    if seconds > MAX_SECONDS:
        raise click.BadParameter(f"{seconds:g} seconds are too many: the maximum is {MAX_SECONDS}")
    return seconds


def patience_option(default: float | None, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Add `--timeout`, a number of seconds above zero, to a command."""
    return click.option(
        "--timeout",
        type=float,
        default=default,
        show_default=default is not None,
        metavar="SECONDS",
        callback=_patience,
        help=text,
    )


def parse_addresses(value: str) -> list[Address]:
    """Parse "host:port,host:port". Raises click.BadParameter."""
    try:
        return addresses.parse_list(value)
    except ValueError as fault:
        raise click.BadParameter(str(fault), param_hint="--bootstrap-server") from None
