"""A checker of linearizability: whether some order of overlapping operations explains all their answers.

Just-in-time linearization, as Lowe describes it (Testing for linearizability, 2017) and Knossos does it: the events of
a history are taken in order, with all configurations that explain the events so far. A configuration is a state and the
set of operations that have taken effect but are not answered yet. At an answer, pending operations take effect in every
possible order until the answered one has. Equal configurations are merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, Generic, TypeVar

from attrs import define, field, frozen

S = TypeVar("S")

MOST_CONFIGURATIONS: Final = 20_000
"""The configurations after which a check gives up: the search is exponential in the number of lost answers."""

MOST_INTERVALS: Final = 2_000
"""The length of a history from which on it is not checked."""


class Operation(ABC, Generic[S]):
    """An operation together with its answer, or with an unknown outcome."""

    @abstractmethod
    def after(self, state: S) -> Iterable[S]:
        """Return the states that the operation may leave; none if its answer is wrong in this state."""


@frozen
class Interval(Generic[S]):
    """The time in which an operation takes effect. One whose answer was lost may do so at any time, or never."""

    operation: Operation[S]
    invoked: int
    answered: int | None = None

    def __str__(self) -> str:
        return f"{self.operation}"


@frozen
class Unexplained(Generic[S]):
    """The first answer that no order explains, the states before it, and what may have taken effect but did not."""

    interval: Interval[S]
    states: tuple[S, ...]
    pending: tuple[Interval[S], ...]

    def __str__(self) -> str:
        states = " or ".join(map(str, self.states))
        text = f"no order of the requests explains: {self.interval}; before it: {states}"
        return f"{text}; unanswered: {'; '.join(map(str, self.pending))}" if self.pending else text


class TooLong(Exception):
    """A history is too long, or too much of it happens at the same time, to be checked."""


Drifts = Callable[[S], Iterable[S]]
"""Returns a state and all those that it may become without any request."""

_Configuration = tuple[S, frozenset[int]]


def unexplained(first: S, history: Sequence[Interval[S]], drifts: Drifts[S]) -> Unexplained[S] | None:
    """Return the first answer of a history that no sequential order explains; None if one explains all of them.

    Raises TooLong.
    """
    if len(history) > MOST_INTERVALS:
        raise TooLong
    search = _Search(history, drifts, {(first, frozenset()): None})
    for number, is_answer in _events(history):
        if not is_answer:
            search.pending[number] = None
            continue
        before = search.configurations
        search.answer(number)
        if not search.configurations:
            states = tuple(dict.fromkeys(state for state, _ in before))
            pending = tuple(history[other] for other in search.pending if history[other].answered is None)
            return Unexplained(history[number], states, pending)
    return None


def _events(history: Sequence[Interval[S]]) -> Iterator[tuple[int, bool]]:
    """Yield the number of each interval when it is invoked (False) and when it is answered (True), in order."""
    events = [(interval.invoked, False, number) for number, interval in enumerate(history)]
    answered = ((interval.answered, number) for number, interval in enumerate(history))
    events += [(at, True, number) for at, number in answered if at is not None]
    yield from map(itemgetter(2, 1), sorted(events))


@define
class _Search(Generic[S]):
    history: Sequence[Interval[S]]
    drifts: Drifts[S]
    configurations: dict[_Configuration[S], None]
    pending: dict[int, None] = field(factory=dict)
    """The operations that are invoked and not answered."""

    _known: dict[tuple[int, S], dict[S, None]] = field(factory=dict, init=False)

    def answer(self, number: int) -> None:
        """Keep the configurations in which the operation takes effect before its answer."""
        kept: dict[_Configuration[S], None] = {}
        seen = dict(self.configurations)
        left = list(seen)
        while left:
            state, done = left.pop()
            if number in done:
                kept[state, done - {number}] = None
                continue
            new = [each for each in self._next(state, done) if each not in seen]
            seen |= dict.fromkeys(new)
            left += dict.fromkeys(new)
            if len(seen) > MOST_CONFIGURATIONS:
                raise TooLong
        del self.pending[number]
        self.configurations = kept

    def _next(self, state: S, done: frozenset[int]) -> Iterator[_Configuration[S]]:
        for number in self.pending:
            if number not in done:
                taken = done | {number}
                for after in self._after(number, state):
                    yield after, taken

    def _after(self, number: int, state: S) -> Iterable[S]:
        """Return the states after an operation and what drifts before it. Each answer asks for most of them again."""
        known = self._known.get((number, state))
        if known is None:
            operation = self.history[number].operation
            known = {after: None for drifted in self.drifts(state) for after in operation.after(drifted)}
            self._known[number, state] = known
        return known
