"""A plan's summary on a terminal of 80 columns: everything to know before carrying it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from spark_bridge.model.summary import BrokerChange, Summary
from spark_bridge.report.measures import BYTES, BYTES_IN, LEADERS, REPLICAS, Measure, known, percent
from spark_bridge.report.racks import by_rack, rack_name, together
from spark_bridge.report.shares import hottest, that_change_most
from spark_bridge.report.words import IDLE, Cost, caveats, is_idle, moves_data, things, verdict, warnings

WIDTH: Final = 80
_MOST_BROKERS: Final = 12
_MOST_RACKS: Final = 12
_MOST_REASONS: Final = 10
_MOST_HOT: Final = 5
_TOGETHER: Final = ((REPLICAS, LEADERS), (BYTES, BYTES_IN))
_KEY: Final = 2
_LONGEST_NAME: Final = 12


def print_report(summary: Summary, console: Console) -> None:
    """Print the changes of a plan, its cost, hot brokers, and warnings."""
    for part in _parts(summary):
        console.print(part)
        if isinstance(part, Table):
            console.print()


def _parts(summary: Summary) -> Iterator[RenderableType]:
    yield from _brokers(summary)
    yield from _racks(summary)
    yield from _reasons(summary)
    yield from _hot(summary)
    yield from _evenness(summary)
    yield from _cost(summary)
    yield from (Text(text) for text in caveats(summary))
    yield from (Text(text, style="bold red" if summary.needless else "bold") for text in warnings(summary))


def _cost(summary: Summary) -> Iterator[Text]:
    if is_idle(summary):
        yield Text(IDLE)
        return
    cost = Cost.of(summary)
    of_all = f"{summary.changed:,} of {things(summary.partitions, 'partition')}"
    yield Text(f"{of_all} change, {summary.reordered:,} of them by order only.")
    if not moves_data(summary):
        return
    moved = "" if cost.in_replicas else f" in {things(summary.moved_replicas, 'replica')}"
    yield Text(f"To move: {cost.text(cost.moved)}{moved}.")
    yield Text(f"The least that any plan can move: {cost.text(cost.least)}; {cost.compared()}.")


def _evenness(summary: Summary) -> Iterator[Table]:
    if summary.evenness:
        table = _table("farthest from its share", numbers=("before", "after", "aimed at"))
        table.add_column("result")
        for row in summary.evenness:
            parts = (row.before, row.after, row.reachable)
            table.add_row(row.measure, *map(percent, parts), verdict(row))
        yield table


def _hot(summary: Summary) -> Iterator[RenderableType]:
    found = hottest(summary, _MOST_HOT)
    if found:
        table = _table("hottest", "rack", "why")
        for hot in found:
            table.add_row(Text(str(hot.broker.id)), _name(hot.broker.rack or "-"), Text(hot.why))
        yield table


def _reasons(summary: Summary) -> Iterator[RenderableType]:
    if not summary.reasons:
        return
    ranked = sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
    table = _table("reason", numbers=("partitions",))
    for reason, count in ranked[:_MOST_REASONS]:
        table.add_row(Text(reason), f"{count:,}")
    yield table
    left = ranked[_MOST_REASONS:]
    if left:
        partitions = things(sum(count for _, count in left), "partition")
        yield Text(f"{things(len(left), 'more reason')}, of {partitions}, not shown.\n")


def _brokers(summary: Summary) -> Iterator[RenderableType]:
    changed = [broker for broker in summary.brokers if broker.before != broker.after]
    if not changed:
        return
    shown = that_change_most(summary, _MOST_BROKERS)
    rows = [((str(broker.id), broker.rack or "-", broker.state), broker) for broker in shown]
    yield from _changes(("broker", "rack", "state"), rows, known(summary))
    left = len(changed) - len(shown)
    unseen = f", {left:,} of them not shown: those that change less" if left else ""
    yield Text(f"{len(changed):,} of {things(len(summary.brokers), 'broker')} change{unseen}.\n")


def _racks(summary: Summary) -> Iterator[RenderableType]:
    racks = by_rack(summary.brokers)
    if len(racks) == 1 or is_idle(summary):
        return
    shown = list(racks.items())[:_MOST_RACKS]
    rows = [((rack_name(rack), f"{len(members):,}"), together(members)) for rack, members in shown]
    yield from _changes(("rack", "brokers"), rows, known(summary))
    if len(racks) > len(shown):
        yield Text(f"{things(len(racks) - len(shown), 'more rack')} not shown.\n")


def _changes(
    heads: Sequence[str], rows: Sequence[tuple[Sequence[str], BrokerChange]], measures: Sequence[Measure]
) -> Iterator[Table]:
    """Yield tables of before, after and change, with two measures each: more do not fit side by side."""
    for pair in _TOGETHER:
        shown = [measure for measure in pair if measure in measures]
        if not shown:
            continue
        numbers = [head for measure in shown for head in (measure.heading, "after", "change")]
        # Sizes are wider than counts: the second table has no room for all heads of the first.
        told = len(heads) if pair is _TOGETHER[0] else _KEY
        table = _table(*heads[:told], numbers=numbers)
        for names, broker in rows:
            table.add_row(*map(_name, names[:told]), *_cells(broker, shown))
        yield table


def _cells(broker: BrokerChange, measures: Iterable[Measure]) -> Iterator[str]:
    for measure in measures:
        yield measure.write(measure.of(broker.before))
        yield measure.write(measure.of(broker.after))
        yield measure.difference(broker)


def _table(*heads: str, numbers: Sequence[str] = ()) -> Table:
    table = Table(*heads, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for head in numbers:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _name(name: str) -> Text:
    """Return a name without interpreting markup, shortened from the left because names differ at their ends."""
    return Text(name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}")
