"""The options of `klamm rollout run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click
from attrs import evolve, frozen
from click.shell_completion import CompletionItem

from controller.rollout.adapting import FIRST
from controller.rollout.choosing import Limits
from klamm.cli.decorators import with_options
from klamm.cli.names import COUNT, RATE, SIZE
from klamm.cli.plan_ids import other_cluster_option
from transport.pages import shown

T = TypeVar("T")

_DEFAULTS: Final = Limits()
AUTO: Final = "auto"
_LIMITS: Final = ("into", "out_of", "leaders", "in_all", "bytes")


@frozen
class Options:
    """The options by which a plan is carried out."""

    limits: Limits
    throttle: int | None
    pause_file: Path | None
    go_url: str | None
    ignore_min_isr: bool
    skip_changed: bool
    ignore_room: bool
    elects: bool
    dry_run: bool
    replan: bool = False
    other_cluster: bool = False
    partial: bool = False
    """Whether the new plan may be one for the topics that are visible."""
    adapts: bool = False
    """Whether the throttle is changed by how brokers do; `throttle` is then the first one."""

    def changed(self, entry: Mapping[str, Any]) -> Options:
        """Return the options with what `klamm rollout set` has changed."""
        limits = {name: entry[name] for name in _LIMITS if name in entry}
        adapts = entry.get("adapts", self.adapts and "throttle" not in entry)
        throttle = entry.get("throttle", self.throttle)
        if adapts and throttle is None:
            throttle = FIRST
        return evolve(self, limits=evolve(self.limits, **limits), throttle=throttle, adapts=adapts)


class RateOrAuto(click.ParamType[int | str]):
    """A rate in bytes per second, or AUTO."""

    name = "rate"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the rate, or AUTO."""
        if value == AUTO:
            return AUTO
        try:
            return RATE.convert(value, param, ctx)
        except click.BadParameter as fault:
            self.fail(f"{fault.message}, or {AUTO}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  as click has it
        """Return AUTO if it begins so."""
        return [CompletionItem(AUTO)] if AUTO.startswith(incomplete) else []


def _url(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        has_user = parts.username is not None
    except ValueError:  # of its port
        is_one = has_user = False
    if has_user:
        raise click.BadParameter("a page is asked without user and password: http://HOST/PATH")
    if not is_one or not value.isprintable() or " " in value:
        raise click.BadParameter(f"{shown(value)!r} is not the URL of a page: http://HOST/PATH")
    return value


def _limit(name: str, default: int | None, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    shows = default is not None
    return click.option(name, type=COUNT, default=default, show_default=shows, metavar="MOVES", help=text)


_IN = "The most replicas that a broker receives at once."
_OUT = "The most that it sends at once, as the leader of partitions."
_LEADERS = "The most partitions at once of which it gives up the leadership."
_ALL = "The most moves in flight in all."
_bytes_option = click.option(
    "--bytes-in-flight", type=SIZE, metavar="SIZE", help="The most bytes in flight in all, such as 50GB."
)

_throttle_option = click.option(
    "--throttle",
    type=RateOrAuto(),
    metavar="RATE|auto",
    help="The most that each broker may send and fetch for the moves, such as 20MB/s, lifted when they are over; or "
    "auto: as much as leaves brokers quick to answer and other replicas in sync.",
)

_OPTIONS: Final = (
    _limit("--in-per-broker", _DEFAULTS.into, _IN),
    _limit("--out-per-broker", _DEFAULTS.out_of, _OUT),
    _limit("--leaders-per-broker", _DEFAULTS.leaders, _LEADERS),
    _limit("--in-flight", _DEFAULTS.in_all, _ALL),
    _bytes_option,
    _throttle_option,
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
    click.option("--ignore-min-isr", is_flag=True, help="Continue while partitions are under min ISR."),
    click.option(
        "--skip-changed", is_flag=True, help="Leave partitions out that have changed since the plan was made."
    ),
    click.option(
        "--replan",
        is_flag=True,
        help="Plan again from the state of now if partitions have changed, or the rollout was aborted.",
    ),
    other_cluster_option,
    click.option("--partial", is_flag=True, help="With --replan: plan also if topics are hidden from you."),
    click.option("--ignore-room", is_flag=True, help="Begin even if the plan does not seem to fit the disks."),
    click.option("--no-elect", is_flag=True, help="Do not elect preferred leaders at the end."),
    click.option("--dry-run", is_flag=True, help="Only check the plan, and show what it needs."),
)


_CHANGES: Final = (
    _limit("--in-per-broker", None, _IN),
    _limit("--out-per-broker", None, _OUT),
    _limit("--leaders-per-broker", None, _LEADERS),
    _limit("--in-flight", None, _ALL),
    _bytes_option,
    _throttle_option,
)


def change_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options that can be changed while a rollout runs; the command receives the changes as `changes`."""

    @wraps(command)
    def with_changes(
        *,
        in_per_broker: int | None,
        out_per_broker: int | None,
        leaders_per_broker: int | None,
        in_flight: int | None,
        bytes_in_flight: int | None,
        throttle: int | str | None,
        **more: object,
    ) -> T:
        limits = (in_per_broker, out_per_broker, leaders_per_broker, in_flight, bytes_in_flight)
        values = (*limits, None, True) if throttle == AUTO else (*limits, throttle, None)
        named = zip((*_LIMITS, "throttle", "adapts"), values, strict=True)
        return command(changes={name: value for name, value in named if value is not None}, **more)

    return with_options(with_changes, _CHANGES)


def run_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options; the command receives them as `options`."""

    @wraps(command)
    def with_run_options(  # noqa: PLR0913  one for each option
        *,
        in_per_broker: int,
        out_per_broker: int,
        leaders_per_broker: int,
        in_flight: int,
        bytes_in_flight: int | None,
        throttle: int | str | None,
        pause_file: Path | None,
        go_url: str | None,
        ignore_min_isr: bool,
        skip_changed: bool,
        ignore_room: bool,
        no_elect: bool,
        dry_run: bool,
        replan: bool,
        other_cluster: bool,
        partial: bool,
        **more: object,
    ) -> T:
        if replan and (dry_run or skip_changed):
            other = "--dry-run" if dry_run else "--skip-changed"
            raise click.UsageError(f"--replan writes a new plan, and {other} does not go with it: use only one of them")
        if partial and not replan:
            raise click.UsageError("--partial is about the new plan of --replan: use both of them, or none")
        limits = Limits(in_per_broker, out_per_broker, leaders_per_broker, in_flight, bytes_in_flight)
        options = Options(
            limits,
            FIRST if isinstance(throttle, str) else throttle,
            pause_file,
            go_url,
            ignore_min_isr=ignore_min_isr,
            skip_changed=skip_changed,
            ignore_room=ignore_room,
            elects=not no_elect,
            dry_run=dry_run,
            replan=replan,
            other_cluster=other_cluster,
            partial=partial,
            adapts=throttle == AUTO,
        )
        return command(options=options, **more)

    return with_options(with_run_options, _OPTIONS)


def quiet_options(throttle: int | None, *, other_cluster: bool) -> Options:
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
        other_cluster=other_cluster,
    )
