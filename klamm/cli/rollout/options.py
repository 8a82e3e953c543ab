"""The options of `klamm rollout run`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
from attrs import frozen

from controller.rollout.choosing import Limits
from klamm.cli.names import COUNT, RATE
from klamm.cli.reassignment.throttling import throttle_option
from klamm.cli.running import with_options

_DEFAULTS: Final = Limits()


@frozen
class Options:
    """How a plan is carried out."""

    limits: Limits
    throttle: int | None
    pause_file: Path | None
    go_url: str | None
    ignore_min_isr: bool
    skip_changed: bool
    ignore_room: bool
    elects: bool
    dry_run: bool


def _url(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.BadParameter(f"{value!r} is not the URL of a page: http://HOST/PATH")
    return value


def _limit(name: str, default: int, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    return click.option(name, type=COUNT, default=default, show_default=True, metavar="MOVES", help=text)


_OPTIONS: Final = (
    _limit("--in-per-broker", _DEFAULTS.into, "The most replicas that a broker receives at once."),
    _limit("--out-per-broker", _DEFAULTS.out_of, "The most that it sends at once, as the leader of partitions."),
    _limit(
        "--leaders-per-broker", _DEFAULTS.leaders, "The most partitions at once of which it gives up the leadership."
    ),
    _limit("--in-flight", _DEFAULTS.in_all, "The most moves in flight in all."),
    click.option("--bytes-in-flight", type=RATE, metavar="BYTES", help="The most bytes in flight in all."),
    throttle_option,
    click.option(
        "--pause-file",
        type=click.Path(path_type=Path),
        help="Begin nothing while this file exists.",
    ),
    click.option(
        "--go-url",
        metavar="URL",
        callback=_url,
        help="Begin something only while GET of this URL answers 2xx; an error or a time-out means no.",
    ),
    click.option("--ignore-min-isr", is_flag=True, help="Go on while partitions are under min ISR."),
    click.option(
        "--skip-changed", is_flag=True, help="Leave partitions out that have changed since the plan was made."
    ),
    click.option("--ignore-room", is_flag=True, help="Begin even if the plan does not seem to fit the disks."),
    click.option("--no-elect", is_flag=True, help="Do not elect preferred leaders at the end."),
    click.option("--dry-run", is_flag=True, help="Only check the plan, and show what it needs."),
)


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command receives them as `options`."""

    @wraps(command)
    def with_run_options(  # noqa: PLR0913  one for each option
        *,
        in_per_broker: int,
        out_per_broker: int,
        leaders_per_broker: int,
        in_flight: int,
        bytes_in_flight: int | None,
        throttle: int | None,
        pause_file: Path | None,
        go_url: str | None,
        ignore_min_isr: bool,
        skip_changed: bool,
        ignore_room: bool,
        no_elect: bool,
        dry_run: bool,
        **more: object,
    ) -> None:
        limits = Limits(in_per_broker, out_per_broker, leaders_per_broker, in_flight, bytes_in_flight)
        options = Options(
            limits,
            throttle,
            pause_file,
            go_url,
            ignore_min_isr=ignore_min_isr,
            skip_changed=skip_changed,
            ignore_room=ignore_room,
            elects=not no_elect,
            dry_run=dry_run,
        )
        command(options=options, **more)

    return with_options(with_run_options, _OPTIONS)


def quiet_options(throttle: int | None) -> Options:
    """Return the options of a process that ends a rollout."""
    return Options(
        _DEFAULTS,
        throttle,
        None,
        None,
        ignore_min_isr=False,
        skip_changed=True,
        ignore_room=False,
        elects=False,
        dry_run=False,
    )
