"""A plan's summary on a terminal of 80 columns: everything to know before carrying it out."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import IO, Final

import click
from attrs import frozen

from klamm.cli.output import bold, print_table
from spark_bridge.model.summary import PlannedBroker, Summary
from spark_bridge.report.measures import BYTES, BYTES_IN, LEADERS, REPLICAS, Measure, known, percent
from spark_bridge.report.racks import by_rack, rack_name, together
from spark_bridge.report.shares import hottest, that_change_most
from spark_bridge.report.words import IDLE, Cost, caveats, is_idle, judgements, moves_data, things, verdict

WIDTH: Final = 80
_MOST_BROKERS: Final = 12
_MOST_RACKS: Final = 12
_MOST_REASONS: Final = 10
_MOST_HOT: Final = 5
_TOGETHER: Final = ((REPLICAS, LEADERS), (BYTES, BYTES_IN))
_KEY: Final = 2
_LONGEST_NAME: Final = 12


@frozen
class _Table:
    """A table; the columns named in `numbers` are aligned to the right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()


def print_report(summary: Summary, file: IO[str], *, is_wide: bool = False, headers: bool = True) -> None:
    """Print the changes of a plan, its cost, hot brokers, and warnings; `is_wide` folds no line."""
    width = sys.maxsize if is_wide else WIDTH
    for part in _parts(summary):
        if isinstance(part, _Table):
            print_table(part.heads, part.rows, numbers=part.numbers, room=width, headers=headers, file=file)
            click.echo(file=file)
        else:
            click.echo(_wrapped(part, width), file=file)
    print_warnings(summary, file)
    for text in judgements(summary):
        click.echo(bold(_wrapped(text, width), "red" if summary.needless else None), file=file)


def print_warnings(summary: Summary, file: IO[str]) -> None:
    """Print what a plan leaves at risk, a line for each, in every format."""
    for text in summary.warnings:
        click.echo(bold(f"warning: {text}"), file=file)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)


def _parts(summary: Summary) -> Iterator[_Table | str]:
    yield from _brokers(summary)
    yield from _racks(summary)
    yield from _reasons(summary)
    yield from _hot(summary)
    yield from _evenness(summary)
    yield from _cost(summary)
    yield from caveats(summary)


def _cost(summary: Summary) -> Iterator[str]:
    if is_idle(summary):
        yield IDLE
        return
    cost = Cost.of(summary)
    of_all = f"{summary.changed:,} of {things(summary.partitions, 'partition')}"
    yield f"{of_all} change, {summary.reordered:,} of them by order only."
    if not moves_data(summary):
        return
    moved = "" if cost.in_replicas else f" in {things(summary.moved_replicas, 'replica')}"
    yield f"To move: {cost.text(cost.moved)}{moved}."
    yield f"The least that any plan can move: {cost.text(cost.least)}; {cost.compared()}."


def _evenness(summary: Summary) -> Iterator[_Table]:
    rows = [
        (row.measure, percent(row.before), percent(row.after), percent(row.reachable), verdict(row, summary))
        for row in summary.evenness
    ]
    if rows:
        numbers = ("before", "after", "aimed at")
        yield _Table(("farthest from its share", *numbers, "result"), rows, numbers)


def _hot(summary: Summary) -> Iterator[_Table]:
    rows = [(str(hot.broker.id), _name(hot.broker.rack or "-"), hot.why) for hot in hottest(summary, _MOST_HOT)]
    if rows:
        yield _Table(("hottest", "rack", "why"), rows, ("hottest",))


def _reasons(summary: Summary) -> Iterator[_Table | str]:
    ranked = sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
    shown, left = ranked[:_MOST_REASONS], ranked[_MOST_REASONS:]
    if shown:
        yield _Table(("reason", "partitions"), [(reason, f"{count:,}") for reason, count in shown], ("partitions",))
    if left:
        partitions = things(sum(count for _, count in left), "partition")
        yield f"{things(len(left), 'more reason')}, of {partitions}, not shown."
        yield ""


def _brokers(summary: Summary) -> Iterator[_Table | str]:
    changed = [broker for broker in summary.brokers if broker.before != broker.after]
    if not changed:
        return
    shown = that_change_most(summary, _MOST_BROKERS)
    rows = [((str(broker.id), _name(broker.rack or "-"), broker.state), broker) for broker in shown]
    yield from _changes(("broker", "rack", "state"), rows, known(summary))
    left = len(changed) - len(shown)
    unseen = f", {left:,} of them not shown: those that change less" if left else ""
    yield f"{len(changed):,} of {things(len(summary.brokers), 'broker')} change{unseen}."
    yield ""


def _racks(summary: Summary) -> Iterator[_Table | str]:
    racks = by_rack(summary.brokers)
    if len(racks) == 1 or is_idle(summary):
        return
    shown = list(racks.items())[:_MOST_RACKS]
    rows = [((_name(rack_name(rack)), f"{len(members):,}"), together(members)) for rack, members in shown]
    yield from _changes(("rack", "brokers"), rows, known(summary))
    if len(racks) > len(shown):
        yield f"{things(len(racks) - len(shown), 'more rack')} not shown."
        yield ""


def _changes(
    heads: Sequence[str], rows: Sequence[tuple[Sequence[str], PlannedBroker]], measures: Sequence[Measure]
) -> Iterator[_Table]:
    """Yield tables of before, after and change, with two measures each: more do not fit side by side."""
    for pair in _TOGETHER:
        shown = [measure for measure in pair if measure in measures]
        if not shown:
            continue
        numbers = [head for measure in shown for head in (measure.heading, "after", "change")]
        # Sizes are wider than counts: the second table has no room for all heads of the first.
        told = len(heads) if pair is _TOGETHER[0] else _KEY
        cells = [(*names[:told], *_cells(broker, shown)) for names, broker in rows]
        yield _Table((*heads[:told], *numbers), cells, ("broker", "brokers", *numbers))


def _cells(broker: PlannedBroker, measures: Sequence[Measure]) -> Iterator[str]:
    for measure in measures:
        yield measure.write(measure.of(broker.before))
        yield measure.write(measure.of(broker.after))
        yield measure.difference(broker)


def _name(name: str) -> str:
    """Return a name, shortened from the left because names differ at their ends."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
