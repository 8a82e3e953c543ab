"""The screen of `klamm top`, driven by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from attrs import define, evolve
from textual.pilot import Pilot
from textual.widget import Widget

from klamm.cli.top.following import Look
from klamm.cli.top.grid import Grid
from klamm.cli.top.screen import Help, TopApp
from tests.cli.top.readings import busy, cluster, look, move, partition, rollout

SMALL: Final = (80, 24)
LARGE: Final = (200, 50)


@define
class Shown:
    """The screen, and what it asked for."""

    app: TopApp
    pilot: Pilot[None]
    hurries: list[None]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def take(self, seen: Look) -> None:
        self.app.take(seen)
        await self.pilot.pause()

    @property
    def lines(self) -> list[str]:
        """The lines of the screen from top to bottom."""
        return [line for widget in self.app.screen_stack[0].children for line in lines_of(widget)]

    @property
    def rows(self) -> list[str]:
        """The lines of the table, its head first."""
        return [line.rstrip() for line in lines_of(self.app.query_one(Grid)) if line.strip()]

    @property
    def keys(self) -> list[str]:
        """The first words of the rows."""
        return [line.split()[0] for line in self.rows[1:]]


def lines_of(widget: Widget) -> list[str]:
    return [strip.text for strip in widget.render_lines(widget.size.region)]


def showing(
    script: Callable[[Shown], Awaitable[None]], first: Look | None = None, size: tuple[int, int] = SMALL
) -> None:
    """Show a look on a terminal of a size, and run a script at it."""

    async def follow(_take: Callable[[Look], None]) -> None:
        await asyncio.sleep(0)

    async def run() -> None:
        hurries: list[None] = []
        app = TopApp("kafka1:9092", first or look(), follow, lambda: hurries.append(None))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(Shown(app, pilot, hurries))

    asyncio.run(run())


def many(count: int) -> Look:
    """Return a look at as many partitions at risk."""
    states = tuple(partition(number, (4, 2), (2,), 2) for number in range(count))
    return look(evolve(busy(), partitions=states, least={}))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_each_line_fits_and_the_screen_is_full(size: tuple[int, int]) -> None:
    async def script(shown: Shown) -> None:
        for key in "1234":
            await shown.press(key)
            lines = shown.lines
            assert len(lines) == size[1]
            assert {len(line) for line in lines} == {size[0]}

    showing(script, look(busy(), rollout(done=3)), size)


def test_the_summary_and_the_table_of_brokers_come_first() -> None:
    async def script(shown: Shown) -> None:
        lines = [line.rstrip() for line in shown.lines]
        assert lines[0].startswith("klamm top  kafka1:9092  controller 1001, epoch 7  ")
        assert lines[1] == "3 brokers  4 partitions  1 offline  2 under min ISR  2 under-replicated"
        assert lines[2] == "1 move in flight, 40.0 MB of 100.0 MB, 2.0 MB/s, 30 s left"
        assert lines[3] == " 1 Brokers 4   2 Moves 1   3 At risk 2   4 Rollouts 0"
        assert shown.keys == ["1", "2", "3", "4"]
        assert lines[-1].startswith("q quit")

    showing(script)


def test_more_room_shows_more_columns() -> None:
    heads: list[str] = []

    async def script(shown: Shown) -> None:
        await shown.press("2")
        heads.append(shown.rows[0])

    for size in (SMALL, LARGE):
        showing(script, size=size)
    assert heads[0].split() == ["partition", "from", "to", "done", "left", "rate", "time", "left", "waits", "for"]
    assert set(heads[1].split()) - set(heads[0].split()) == {"progress", "started"}


def test_keys_choose_the_table() -> None:
    async def script(shown: Shown) -> None:
        firsts = []
        for key in ("2", "3", "4", "tab", "tab", "shift+tab"):
            await shown.press(key)
            firsts.append(shown.rows[0].split()[0])
        assert firsts == ["partition", "partition", "rollout", "id", "partition", "id"]

    showing(script)


def test_keys_sort_and_turn_the_order_round() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("greater_than_sign", "r")
        assert (shown.rows[0].split()[0], shown.keys) == ("id↓", ["4", "3", "2", "1"])
        await shown.press("greater_than_sign", "greater_than_sign", "r")
        assert "state↑" in shown.rows[0]
        assert shown.keys == ["4", "1", "2", "3"]
        await shown.press("s")
        assert shown.keys == ["1", "2", "3", "4"]
        await shown.press("less_than_sign")
        assert shown.rows[0].endswith("to copy↑")
        assert shown.keys == ["3", "1", "2", "4"]

    showing(script)


def test_an_order_stays_with_its_table() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("r", "3", "1")
        assert shown.keys == ["4", "3", "2", "1"]
        await shown.press("3")
        assert shown.keys == ["orders-2", "orders-1"]

    showing(script, look(evolve(busy(), least={})))


def test_words_filter_rows_while_they_are_typed_and_are_no_commands() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("3", "slash", *"orders-2q")
        assert shown.rows[1:] == ["no partition is at risk"]
        assert shown.lines[-1].rstrip() == "rows with: orders-2q_"
        await shown.press("backspace")
        assert shown.keys == ["orders-2"]
        await shown.press("enter")
        assert "only rows with: orders-2" in shown.lines[3]
        assert shown.lines[-1].startswith("q quit")
        await shown.press("escape")
        assert shown.keys == ["orders-2", "orders-1"]

    showing(script)


def test_escape_ends_the_typing_of_words_without_any() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("slash", *"kafka1", "escape")
        assert len(shown.keys) == 4
        await shown.press("3")
        assert shown.rows[0].startswith("partition")

    showing(script)


def test_the_selected_row_is_told_in_full_and_stays_selected_as_rows_come() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("2", "down")
        assert detail(shown) == "orders-5: replicas 2,1 become 3,2; waits for broker 3 to join the ISR"
        await shown.take(moves(3, 4, 5))
        assert detail(shown).startswith("orders-5: ")
        await shown.take(moves(3, 4))
        assert detail(shown).startswith("orders-4: ")
        await shown.take(moves())
        assert detail(shown) == ""

    def moves(*numbers: int) -> Look:
        return look(evolve(busy(), moves=tuple(move(number) for number in numbers)))

    def detail(shown: Shown) -> str:
        return "".join(shown.lines[-4:-1]).strip()

    showing(script, moves(4, 5))


def test_a_long_table_is_scrolled_with_the_selection() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("3")
        assert shown.keys[0] == "orders-0"
        await shown.press("end")
        assert shown.keys[-1] == "orders-9999"
        await shown.press("pageup", "home")
        assert shown.keys[0] == "orders-0"
        await shown.press("pagedown", "pagedown", "up")
        assert "orders-27 is under-replicated" in shown.lines[-4]

    showing(script, many(10_000))


def test_a_cluster_that_does_not_answer_is_shown_as_such_above_what_was_seen_before() -> None:
    async def script(shown: Shown) -> None:
        await shown.take(look(trouble="no controller answers"))
        assert shown.lines[2].startswith("NO ANSWER, what is shown is ")
        assert "trying again: no controller answers" in " ".join(line.strip() for line in shown.lines[2:4])
        assert shown.keys == ["1", "2", "3", "4"]
        await shown.take(look(evolve(busy(), cluster=cluster([1, 2, 3, 4]), partitions=())))
        assert shown.lines[2].startswith("1 move in flight")
        assert shown.lines[1].startswith("4 brokers")

    showing(script)


def test_help_covers_the_screen_until_a_key_is_pressed() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("question_mark")
        assert helping(shown)
        await shown.take(look(evolve(busy(), partitions=())))
        assert helping(shown)
        await shown.press("2")
        assert not helping(shown)
        assert shown.rows[0].startswith("id")
        assert shown.keys == ["1", "2", "3"]

    def helping(shown: Shown) -> bool:
        return isinstance(shown.app.screen, Help)

    showing(script)


def test_space_looks_now_and_q_ends() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("space")
        assert shown.hurries == [None]
        await shown.press("q")
        assert shown.app.return_code == 0

    showing(script)


@pytest.mark.parametrize("no_color", [False, True])
def test_without_colours_nothing_is_said_by_colour_alone(monkeypatch: pytest.MonkeyPatch, *, no_color: bool) -> None:
    colours: set[str] = set()
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")

    async def script(shown: Shown) -> None:
        await shown.press("3")
        assert "offline" in shown.rows[1]
        svg = shown.app.export_screenshot()
        colours.update(colour for colour in ("#cc555a", "#98a84b") if colour in svg)

    showing(script)
    assert bool(colours) is not no_color
