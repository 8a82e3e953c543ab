"""The cycle collector of the process, which is spared the many objects of a large event."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 10_000
"""The number of new objects from which on it is worth while to keep them from the collector."""


@contextmanager
def paused_collector(*, keeps: bool = False) -> Iterator[None]:
    """Disable the cycle collector of the whole process within the block. Does nothing if it is disabled already.

    An event creates up to millions of long-lived objects without reference cycles. The collector would traverse them
    in vain each time a generation fills up, which took a third to a half of the time of large events. An event waits
    for the store at most until the session expires, so the pause for the rest of the process is bounded.

    If the block `keeps` what it makes, and these are MANY objects, the collector leaves them alone until `release` is
    called. What is in cycles at the end of such a block stays as well.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if keeps and gc.get_count()[0] > MANY:
            gc.freeze()
        gc.enable()


def release() -> None:
    """Let the collector look at all objects again: those of an office that has ended may be in cycles."""
    if gc.isenabled():
        gc.unfreeze()
