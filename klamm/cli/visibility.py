"""What commands say where a user sees only a part of a cluster, and what they refuse there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from controller.admin.visibility import Visibility
from klamm.cli.formats import Note
from transport.messages import PartitionState

NOTHING_VISIBLE: Final = "no topic is visible to us: our principal needs Describe on the topics"


def require_any(visibility: Visibility, states: Iterable[PartitionState]) -> None:
    """Raise click.ClickException if a user may describe no topic: an empty answer would look complete."""
    if not visibility.sees_all_topics and not any(True for _ in states):
        raise click.ClickException(NOTHING_VISIBLE)


def note(partial: str | None) -> list[Note]:
    """Return a note about what is hidden, which goes to stderr also beside documents; nothing if nothing is."""
    return [] if partial is None else [Note(partial, always=True)]
