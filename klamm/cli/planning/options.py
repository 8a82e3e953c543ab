"""The options that the commands of `klamm plan` share, the request that they make, and the document of its report."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypedDict

import click
from msgspec import Struct

from klamm.cli.completions import broker_lists, topic_lists
from klamm.cli.connect import Cluster, live_options
from klamm.cli.decorators import with_options
from klamm.cli.formats import Format, out_option
from klamm.cli.names import broker_ids
from klamm.cli.running import patience_option
from spark_bridge.inputs.sources import OnBadRows, Source, Sources, source_of
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.model.summary import Evenness, Flow, KeptReplicas, Load, OverfullDisk, PlannedBroker, RackFlow
from spark_bridge.process.request import EngineName, PlanRequest


class Options(TypedDict, total=False):
    """The options that click passes to a command; each command has some of them."""

    snapshot: str | None
    live: Cluster | None
    loads: tuple[str, ...]
    brokers_table: str | None
    set_aside_bad_rows: bool
    partial: bool
    brokers: frozenset[int]
    exclude: frozenset[int]
    replication_factor: int
    topics: tuple[str, ...]
    tolerance: float
    leaders: str | None
    ignore_racks: bool
    force: bool
    dead_is_gone: bool
    engine: str
    master: str | None
    remote: str | None
    conf: dict[str, str]
    timeout: float | None
    out: str | None
    output: Format
    no_headers: bool
    report: str | None


def request_of(kind: GoalKind, options: Options, output: Source) -> PlanRequest:
    """Combine the options into a request.

    Raises:
        PlanError: They exclude each other or are out of range, whatever the cluster is like.
    """
    leaders, table, snapshot = options.get("leaders"), options["brokers_table"], options["snapshot"]
    assert snapshot is not None, "a plan is made for a cluster"
    return PlanRequest(
        sources=Sources(
            snapshot=source_of(snapshot),
            loads=tuple(map(source_of, options["loads"])),
            brokers=None if table is None else source_of(table),
            on_bad_rows=OnBadRows.SET_ASIDE if options["set_aside_bad_rows"] else OnBadRows.REFUSE,
            partial=options["partial"],
        ),
        goal=Goal(
            kind=kind,
            brokers=options.get("brokers", frozenset()),
            replication_factor=options.get("replication_factor"),
            topics=options.get("topics", ()),
            tolerance=options["tolerance"],
            racks=not options.get("ignore_racks", False),
            leaders=None if leaders is None else LeaderScope(leaders),
            force=options.get("force", False),
            exclude=options["exclude"],
            dead_is_gone=options.get("dead_is_gone", False),
        ),
        output=str(output),
        engine=EngineName(options["engine"]),
        master=options["master"],
        remote=options["remote"],
        timeout=options["timeout"],
        conf=options["conf"],
    )


def _ids(_context: click.Context, option: click.Parameter, text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset()
    ids = broker_ids(text)
    if ids is None:
        raise click.UsageError(f"{option.opts[0]} takes broker ids such as 3,7, not {text!r}")
    return frozenset(ids)


def _names(_context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        # An empty list of names would mean all topics.
        if not text.strip(", "):
            raise click.UsageError(f"{option.opts[0]} takes names such as orders,click*, not {text!r}")
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def _settings(_context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            raise click.UsageError(f"{option.opts[0]} takes NAME=VALUE such as spark.cores.max=8, not {text!r}")
    pairs = (text.partition("=") for text in texts)
    return {name.strip(): value for name, _, value in pairs}


def brokers_option(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Add the option for the brokers of the goal."""
    return click.option(
        "--brokers", required=True, metavar="IDS", callback=_ids, shell_complete=broker_lists, help=text
    )


def topics_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option for the topics of the goal."""
    text = "Only these topics, by names or patterns such as orders,click*; repeatable."
    return click.option(
        "--topics", multiple=True, metavar="NAMES", callback=_names, shell_complete=topic_lists, help=text
    )(command)


def racks_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option to plan as if brokers had no racks."""
    return click.option("--ignore-racks", is_flag=True, help="Plan as if brokers had no racks.")(command)


_INPUTS: Final = (
    click.option("--snapshot", metavar="FILE", help="The cluster, as printed by `klamm state dump`."),
    live_options,
    click.option(
        "--loads",
        multiple=True,
        metavar="FILE",
        help="Bytes and rates of partitions: CSV, JSON, Parquet, or the output of kafka-log-dirs; repeatable.",
    ),
    click.option(
        "--brokers-table", metavar="FILE", help="Racks, capacities, disks and states of brokers: CSV, JSON or Parquet."
    ),
    click.option("--set-aside-bad-rows", is_flag=True, help="Skip bad rows, and count them."),
    click.option("--partial", is_flag=True, help="Plan also if topics are hidden from you, for those that you see."),
)
_CHOICES: Final = (
    click.option(
        "--exclude",
        metavar="IDS",
        callback=_ids,
        shell_complete=broker_lists,
        help="Brokers that receive nothing new and keep what they have.",
    ),
    click.option(
        "--dead-is-gone",
        is_flag=True,
        help="Move replicas off brokers that do not serve; without it they keep what they have.",
    ),
    click.option(
        "--tolerance",
        type=float,
        default=0.05,
        show_default=True,
        metavar="PART",
        help="How far from its share a broker may end: a low value gives a more even cluster, a high one moves less.",
    ),
)
_CHOICES_OF_MOVES: Final = (
    click.option(
        "--leaders",
        type=click.Choice([scope.value for scope in LeaderScope]),
        help="The partitions whose preferred leader may change without a move; the default depends on the goal.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Accept a plan that leaves a measure less even without need.",
    ),
)
_PLACES: Final = (
    click.option(
        "--engine",
        type=click.Choice([engine.value for engine in EngineName]),
        default=EngineName.AUTO.value,
        show_default=True,
        help="What computes the plan; the plan is the same.",
    ),
    click.option("--master", metavar="URL", help="Where Spark runs, as for spark-submit; this machine by default."),
    click.option("--remote", metavar="URL", help="A Spark Connect server to use, such as sc://host:15002."),
    click.option(
        "--conf", multiple=True, metavar="NAME=VALUE", callback=_settings, help="A setting for Spark; repeatable."
    ),
    patience_option(None, "Give up after this time."),
)


# --- results ----------------------------------------------------------------------------------------------------


class PlannedRack(Struct):
    """A rack before and after the plan, and the number of its brokers; null stands for all brokers without one."""

    rack: str | None
    brokers: int
    before: Load
    after: Load


class HotBroker(Struct):
    """A broker that stays above its share of a measure, and the reason."""

    broker: int
    measure: str
    load: int
    share: float
    excess: float
    why: str


class PlanReport(Struct):
    """The summary of a plan. Sizes are in bytes, rates in bytes per second, shares and excesses as they are compared.

    `ratio` compares what moves with the least that any plan can move; null where nothing has to move.
    """

    goal: str
    options: dict[str, str]
    engine: str
    partitions: int
    changed: int
    reordered: int
    moved_replicas: int
    moved_bytes: int
    lower_bound: int
    brokers: list[PlannedBroker]
    evenness: list[Evenness]
    flows: list[Flow]
    flows_left: int
    reasons: dict[str, int]
    set_aside: dict[str, int]
    unknown_loads: int
    worse: list[str]
    needless: list[str]
    notes: list[str]
    rack_flows: list[RackFlow]
    warnings: list[str]
    kept: list[KeptReplicas]
    stranded: int
    first_stranded: list[str]
    unrepaired: int
    overfull: list[OverfullDisk]
    ratio: float | None
    racks: list[PlannedRack]
    hottest: list[HotBroker]


def _named_place(command: Callable[..., None]) -> Callable[..., None]:
    """Pass the place of the plan as a path or as a URL that Spark reaches; `file://` is a path."""

    @wraps(command)
    def with_place(*, out: str | None, **options: Any) -> None:
        command(out=None if out is None else str(source_of(out)), **options)

    return with_place


_OUT: Final = (
    "A new folder for the plan: JSON in files of limited size, rollbacks, Parquet. NAME.json writes only the JSON, to "
    "one file. Without --out, the JSON goes to stdout."
)
_RESULTS: Final = (
    out_option(PlanReport, _OUT, "FOLDER|NAME.json", has_tables=True, has_old_json=True),
    _named_place,
    click.option("--report", metavar="FILE", help="Also write the report to this file, as an HTML page."),
)


def planning_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all plans that move replicas, in the order of the help."""
    return with_options(command, (*_INPUTS, *_CHOICES, *_CHOICES_OF_MOVES, *_PLACES, *_RESULTS))


def leader_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a plan that moves no replicas."""
    return with_options(command, (*_INPUTS, *_CHOICES, *_PLACES, *_RESULTS))
