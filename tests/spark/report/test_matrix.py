"""A matrix of movement with more brokers than it can show."""

from __future__ import annotations

from spark_bridge.report.charts.matrix import Cell, gathered


def test_what_fits_is_left_alone() -> None:
    cells = [Cell("1", "4", 7), Cell("2", "4", 9)]
    assert gathered(cells, most=2) == cells


def test_all_but_the_greatest_go_together() -> None:
    cells = [Cell("1", "9", 5), Cell("2", "9", 20), Cell("3", "9", 1), Cell("4", "9", 30)]
    assert gathered(cells, most=3) == [Cell("others", "9", 6), Cell("2", "9", 20), Cell("4", "9", 30)]


def test_nothing_is_lost_on_the_way() -> None:
    cells = [
        Cell(str(source), str(destination), source + destination) for source in range(9) for destination in range(9)
    ]
    kept = gathered(cells, most=4)
    assert sum(cell.amount for cell in kept) == sum(cell.amount for cell in cells)
    assert len({cell.source for cell in kept}) == len({cell.destination for cell in kept}) == 4
