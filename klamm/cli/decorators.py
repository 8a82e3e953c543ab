"""Putting options on commands, without loading anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])


def with_options(command: AnyCommand, options: Sequence[Callable[[AnyCommand], AnyCommand]]) -> AnyCommand:
    """Return a command with options, in the order of its help."""
    return reduce(lambda made, option: option(made), reversed(options), command)
