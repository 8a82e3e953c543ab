"""Registrations of Kafka's brokers without the listener that controllers use, as another configuration writes them."""

from __future__ import annotations

from attrs import frozen

from simulator.actions.scene import CannotBeDone, Scene, Strike
from simulator.actions.znodes import write_by_hand
from simulator.kafka.orders import LISTENER
from transport.store import paths
from transport.store.protocol import ANY_VERSION, Set

_OTHER = "OTHER"


@frozen
class RenameListener(Strike):
    """Give the listener of brokers another name in their registrations, or with `back` its own again.

    The brokers live and lead on. Of their registrations, no invariant is checked from then on.
    """

    broker_ids: tuple[int, ...]
    back: bool = False

    def strike(self, scene: Scene) -> None:
        """Rename them. Raises CannotBeDone if none of these brokers has such a registration."""
        names = (_OTHER, LISTENER) if self.back else (LISTENER, _OTHER)
        old, new = (f'"{name}'.encode() for name in names)
        tree = scene.cluster.durable.tree
        found = {path: tree.read(path) for path in map(paths.broker, self.broker_ids)}
        # The name stands before the address, and as a key of the map of protocols.
        renamed = {
            path: znode.data.replace(old + b"://", new + b"://").replace(old + b'":"', new + b'":"')
            for path, znode in found.items()
            if znode is not None and old + b"://" in znode.data
        }
        if not renamed:
            raise CannotBeDone("no registration has the listener")
        for path, data in renamed.items():
            scene.cluster.world.safety.exempt.add(path)
            write_by_hand(scene.cluster, Set(path, data, ANY_VERSION), "renames the listener in")
