"""Tables: at most as wide as the terminal, folded between words if possible, and unlimited on a pipe."""

from __future__ import annotations

import click
import pytest

from klamm.cli.output import print_table

NAME = "payments.settlement-batches.by-region.eu-central-1.v2-17"
REASON = "waits for broker 5, which does not fetch from leader 1: 1.2 GB behind, nothing came for 12 s"


def lines(capsys: pytest.CaptureFixture[str], *rows: tuple[object, ...], narrow: bool = False) -> list[str]:
    print_table(["partition", "replicas", "why"], rows, narrow=narrow)
    return capsys.readouterr().out.splitlines()


def test_a_small_table_is_as_wide_as_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, ("t-0", (1, 2, 3), None), ("t-10", (), "x")) == [
        "partition  replicas  why",
        "────────────────────────",
        "t-0        1,2,3     -",
        "t-10       -         x",
    ]
    assert lines(capsys, narrow=True) == ["partition replicas why", "──────────────────────"]


def test_a_cell_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, ("t-0", "rack\x1b]0;title\x07", "\x9b2J"))[2] == r"t-0        rack\x1b]0;title\x07  \x9b2J"


def test_a_cell_breaks_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, ("t-0", "a\nb\tc\r", None))[2:] == [r"t-0        a\nb\tc\r  -"]


def test_integers_are_aligned_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ["topic", "leader", "mixed", "lag"],
        [("t", 9, 1, "5 B"), ("t", 1001, "x", "12 B"), ("u", None, 2, "-")],
        numbers=["lag"],
    )
    assert capsys.readouterr().out.splitlines()[2:] == [
        "t           9  1       5 B",
        "t        1001  x      12 B",
        "u           -  2         -",
    ]


def test_wide_characters_take_two_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines(capsys, ("注文", (1, 2), "é\u0301"), ("orders", (), "x"))[2:] == [
        "注文       1,2       é\u0301",
        "orders     -         x",
    ]
    monkeypatch.setenv("COLUMNS", "40")
    assert lines(capsys, ("orders-0", (1, 2), "注文の処理が遅れています注文の処理"))[2:] == [
        "orders-0   1,2       注文の処理が遅れて",
        "                     います注文の処理",
    ]


@pytest.mark.parametrize(("kind", "marks"), [("xterm", 2), ("dumb", 0)])
def test_a_terminal_that_only_prints_lines_gets_no_bold_head(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str, marks: int
) -> None:
    monkeypatch.setenv("TERM", kind)
    with click.Context(click.Command("list"), color=True):
        assert lines(capsys)[0].count("\x1b[") == marks


def test_a_pipe_gets_whole_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert lines(capsys, (NAME, (1, 2), REASON))[2] == f"{NAME}  1,2       {REASON}"


def test_at_80_columns_the_widest_is_folded_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folded = lines(capsys, ("orders-0", (1, 2), REASON))
    assert folded[2:] == [
        "orders-0   1,2       waits for broker 5, which does not fetch from leader 1: 1.2",
        "                     GB behind, nothing came for 12 s",
    ]
    assert max(map(len, folded)) == 80


def test_names_are_folded_after_everything_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folded = lines(capsys, (NAME, (1, 2), REASON))
    assert max(map(len, folded)) == 80
    assert folded[2] == f"{NAME}  1,2       waits for"
    monkeypatch.setenv("COLUMNS", "60")
    folded = lines(capsys, (NAME, (1, 2), REASON))
    assert max(map(len, folded)) == 60
    assert "".join(line.split("  ")[0].strip() for line in folded[2:4]) == NAME


def test_a_table_that_cannot_fit_is_wider(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert max(map(len, lines(capsys, (NAME, (1, 2), REASON)))) == 8 + 8 + 7 + 4
