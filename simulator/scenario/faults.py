"""The faults of a scenario's file, with their places."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from attrs import frozen
from yaml import Node


@frozen(order=True)
class Fault:
    """A fault, at a line and a column counted from 1."""

    line: int
    column: int
    text: str


class Unreadable(Exception):
    """A document, or a part of it, is invalid."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.text for fault in faults))
        self.faults = faults


class Unfit(Exception):
    """The text of a scalar does not fit; without a message, the message names what is expected and what is found."""


class ScenarioFault(ValueError):
    """A scenario's file is invalid; the message has a line for each fault, as compilers print them."""

    def __init__(self, path: str, faults: Iterable[Fault]) -> None:
        self.faults = sorted(set(faults))
        super().__init__("\n".join(f"{path}:{fault.line}:{fault.column}: {fault.text}" for fault in self.faults))


def fault_at(node: Node, text: str) -> Fault:
    """Return a fault at the place of a node."""
    return Fault(node.start_mark.line + 1, node.start_mark.column + 1, text)


def unreadable(node: Node, text: str) -> Unreadable:
    """Return the exception for one fault at the place of a node."""
    return Unreadable(fault_at(node, text))


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a suggestion in place of an unknown word: the nearest known word, or all of them."""
    names = list(known)
    close = get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"write one of {', '.join(names)}"
