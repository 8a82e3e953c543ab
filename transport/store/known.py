"""The znodes that a multi sets and that its caller then knows: why their watches need not tell of it.

A watch fires once, and also for changes of its own session. If a multi of ours sets a watched znode at zxid Z, the
notification only has us read what we wrote. Nothing in it tells our change from another's, and a count of ours would
go wrong. Therefore all notifications of such a znode are held back until the multi is answered.

- If it failed, they are passed on: each tells of a change by somebody else.
- If it took effect, they are dropped, and the znodes are watched by SetWatches relative to Z. The server lets fire at
  once what was changed or deleted after Z, and arms the watches of the rest.

So nothing is lost. Each change after Z is told, by SetWatches or by the watch that it armed, even if its notification
was among those that were dropped. Of a change before Z nothing is left to be read: at Z the znode has the data that the
multi gave it, and whoever reads it finds these or those of a later change. This needs no versions, which start again
when a znode is deleted and created. If the server sent the notification of our change after the answer, it would be
passed on, and tell nothing new. A change that the caller had read before the multi has been told already, because the
server sends a notification before any answer that shows the change.

If the connection breaks before SetWatches is answered, all watches of the session are lost, which SUSPENDED tells.

Lists of children are always told. A multi adds to such a list without knowing all of it, so that a notification may be
the only sign of another's child. Znodes that a multi deletes are told as well, because they are not watched afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from transport.store.protocol import Create, Delete, Op, Set


def known_after(ops: Sequence[Op], known: Collection[str]) -> frozenset[str]:
    """Return those of the znodes `known` that operations set, and do not create or delete."""
    if not known:
        return frozenset()
    others = {op.path for op in ops if isinstance(op, Create | Delete)}
    return frozenset(op.path for op in ops if isinstance(op, Set) and op.path in known and op.path not in others)
