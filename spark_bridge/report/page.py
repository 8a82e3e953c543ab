"""A plan's report as one page of HTML that needs nothing else: no network, no other file, and no script to be read.

The page is in `templates/`; this module gives it its values. Names of topics and racks may contain anything: the
templates escape every value.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.resources import files
from operator import attrgetter
from typing import Final

from attrs import frozen
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spark_bridge.model.summary import Flow, PlannedBroker, Summary
from spark_bridge.report.charts import plot
from spark_bridge.report.charts.matrix import MOST, Cell, Matrix, gathered, shortened
from spark_bridge.report.measures import BYTES, EVENED, REPLICAS, Measure, known, percent, size
from spark_bridge.report.racks import by_rack, rack_flows, rack_name, together
from spark_bridge.report.shares import aims, hottest, share_of, that_change_most
from spark_bridge.report.words import IDLE, Cost, caveats, is_idle, moves_data, things, verdict, warnings

_MOST_BROKERS: Final = 2000
_MOST_FLOWS: Final = 20
_MOST_REASONS: Final = 30
_LEAST_RACKS: Final = 2


def html(summary: Summary) -> bytes:
    """Return the page."""
    script = _file("page.js")
    page = _environment().get_template("page.html")
    text = page.render(
        summary=summary,
        style=Markup(_file("page.css")),  # noqa: S704  our own file
        script=Markup(script),  # noqa: S704  our own file
        # The page may run no script except its own.
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
        cluster=_cluster(summary),
        idle=IDLE if is_idle(summary) else None,
        warnings=warnings(summary),
        caveats=caveats(summary),
        tiles=_tiles(summary),
        measures=known(summary),
        figures=[_figure(summary, measure) for measure in known(summary) if measure in EVENED],
        racks=_racks(summary),
        movement=_movement(summary),
        hottest=hottest(summary),
        reasons=sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0])),
        brokers=_brokers(summary),
    )
    return text.encode("utf-8", "xmlcharrefreplace")


def _file(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "geometry": plot,
        "verdict": verdict,
        "most_bars": plot.MOST_BARS,
        "most_reasons": _MOST_REASONS,
    }
    environment.filters |= {
        "grouped": "{:,}".format,
        "percent": percent,
        "px": _pixels,
        "rack_name": rack_name,
        "shortened": shortened,
        "size": size,
    }
    return environment


def _pixels(number: float) -> str:
    """Return a number with as many decimals as a screen can show."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _cluster(summary: Summary) -> list[str]:
    """Return the sizes of the cluster."""
    racks = len({broker.rack for broker in summary.brokers} - {None})
    sizes = [things(summary.partitions, "partition"), things(len(summary.brokers), "broker")]
    return [*sizes, things(racks, "rack")] if racks else sizes


def _tiles(summary: Summary) -> list[tuple[str, str, str]]:
    """Return the numbers to read first: a name, a value, and a line that explains the value."""
    tiles = []
    if moves_data(summary):
        cost = Cost.of(summary)
        moving = things(summary.changed - summary.reordered, "partition")
        tiles.append(("to move", cost.text(cost.moved), f"{things(summary.moved_replicas, 'replica')} in {moving}"))
        tiles.append(("least possible", cost.text(cost.least), cost.compared()))
    part = percent(summary.changed / summary.partitions) if summary.partitions else "none"
    order = f"{part} of all, {summary.reordered:,} by order only"
    tiles.append(("partitions that change", f"{summary.changed:,}", order))
    if summary.evenness:
        worst = max(summary.evenness, key=lambda evenness: evenness.after)
        was = max(summary.evenness, key=lambda evenness: evenness.before)
        before = f"before: {percent(was.before)} in {was.measure}"
        tiles.append(("farthest from its share", f"{percent(worst.after)} in {worst.measure}", before))
    return tiles


@frozen
class _Figure:
    """A plot of one measure; `share` is the share of a broker, empty if brokers differ in capacity."""

    measure: Measure
    share: str
    plot: plot.Plot


def _figure(summary: Summary, measure: Measure) -> _Figure:
    """Return the load of each broker: bars for a few brokers, curves for many."""
    unit = share_of(summary.brokers, measure)
    points = _points(summary.brokers, measure, unit, [str(broker.id) for broker in summary.brokers])
    draw = plot.bars if len(points) <= plot.MOST_BARS else plot.curves
    drawn = draw(points, _aim(summary, measure), f"{measure.name} per broker before and after", "brokers")
    capacities = {broker.capacity for broker in summary.brokers}
    share = measure.text(unit * min(capacities)) if len(capacities) == 1 else ""
    return _Figure(measure, share, drawn)


def _aim(summary: Summary, measure: Measure) -> float:
    return aims(summary).get(measure.name, 0.0)


def _points(brokers: Sequence[PlannedBroker], measure: Measure, unit: float, names: Sequence[str]) -> list[plot.Point]:
    """Return each broker's load as a part of its share, where `unit` is the share of one unit of capacity.

    A broker without a share (a rack whose brokers all leave) is compared with one unit.
    """
    points = []
    for name, broker in zip(names, brokers, strict=True):
        share = unit * broker.capacity or unit or 1.0
        before, after = measure.of(broker.before), measure.of(broker.after)
        loads = f"{measure.text(before)} before, {measure.text(after)} after: {percent(after / share)} of its share"
        points.append(plot.Point(name, before / share, after / share, f"{name} ({broker.state}): {loads}"))
    return points


@frozen
class _Racks:
    """The racks: rows of name, number of brokers and sums; and a plot of `measure`, None for too many racks."""

    rows: Sequence[tuple[str, int, PlannedBroker]]
    measure: Measure
    plot: plot.Plot | None


def _racks(summary: Summary) -> _Racks | None:
    """Return the racks; None if there are none to compare."""
    racks = by_rack(summary.brokers)
    if len(racks) < _LEAST_RACKS:
        return None
    rows = [(rack_name(rack), len(members), together(members)) for rack, members in racks.items()]
    measure = BYTES if BYTES in known(summary) else REPLICAS
    if len(racks) > plot.MOST_BARS:
        return _Racks(rows, measure, None)
    wholes, names = [whole for _, _, whole in rows], [name for name, _, _ in rows]
    points = _points(wholes, measure, share_of(summary.brokers, measure), names)
    drawn = plot.bars(points, _aim(summary, measure), f"{measure.name} per rack before and after", "racks")
    return _Racks(rows, measure, drawn)


@frozen
class _Movement:
    """The movement between `places` (brokers or racks).

    Attributes:
        places: What moves are shown between.
        matrix: The amounts.
        is_partial: Whether the matrix lacks flows that the summary does not list.
        listed: The largest flows between brokers.
        unlisted: The number of all other flows.
    """

    places: str
    matrix: Matrix
    is_partial: bool
    listed: Sequence[Flow]
    unlisted: int


def _movement(summary: Summary) -> _Movement | None:
    """Return what moves, between brokers if these are few, else between racks; None if nothing moves."""
    if not summary.flows:
        return None
    in_replicas = Cost.of(summary).in_replicas
    amount = attrgetter("replicas" if in_replicas else "bytes")
    write: Callable[[int], str] = _replicas if in_replicas else size
    by_racks = _has_many_brokers(summary)
    if by_racks:
        cells = [Cell(rack_name(f.source), rack_name(f.destination), amount(f)) for f in rack_flows(summary)]
        places, order = "racks", [rack_name(rack) for rack in by_rack(summary.brokers)]
    else:
        cells = [Cell(str(f.source), str(f.destination), amount(f)) for f in summary.flows]
        places, order = "brokers", [str(broker.id) for broker in summary.brokers]
    listed = summary.flows[:_MOST_FLOWS]
    return _Movement(
        places,
        Matrix.of(gathered(cells), order, write, f"What moves between {places}"),
        is_partial=summary.flows_left > 0 and not (summary.rack_flows and by_racks),
        listed=listed,
        unlisted=len(summary.flows) - len(listed) + summary.flows_left,
    )


def _replicas(number: int) -> str:
    return things(number, "replica")


def _has_many_brokers(summary: Summary) -> bool:
    """Return whether the brokers are too many for a matrix, and there are racks to show instead."""
    sources, destinations = {flow.source for flow in summary.flows}, {flow.destination for flow in summary.flows}
    are_many = summary.flows_left > 0 or max(len(sources), len(destinations)) > MOST
    return are_many and len(by_rack(summary.brokers)) > 1


@frozen
class _Brokers:
    """The brokers in the table; `have_disks` says whether the size of any disk is known."""

    caption: str
    shown: Sequence[PlannedBroker]
    have_disks: bool


def _brokers(summary: Summary) -> _Brokers:
    """Return all brokers, or of very many those that change most."""
    shown: Sequence[PlannedBroker] = summary.brokers
    caption = "Each broker before and after"
    if len(shown) > _MOST_BROKERS:
        shown = that_change_most(summary, _MOST_BROKERS)
        caption = f"The {len(shown):,} brokers of {len(summary.brokers):,} that change most; the JSON has all"
    return _Brokers(caption, shown, any(broker.disk for broker in shown))
