"""The id of a cluster of Apache Kafka's, which its first broker makes up."""

from __future__ import annotations

from attrs import define, field

from transport.log import get_logger
from transport.store import fields, paths
from transport.store.protocol import MetadataStore, StoreError

_log = get_logger(__name__)


@define
class ClusterId:
    """The id in a store, read when it is first asked for."""

    store: MetadataStore
    _known: str | None = field(default=None, init=False)

    async def read(self) -> str | None:
        """Return the id; None while there is none, or none that can be read."""
        if self._known is None:
            try:
                [znode] = await self.store.read([paths.CLUSTER_ID])
                self._known = None if znode is None else decode_cluster_id(znode.data)
            except (StoreError, fields.UndecodableZnode) as error:
                _log.warning("clients are not told the id of the cluster", reason=str(error))
        return self._known


def decode_cluster_id(data: bytes) -> str:
    """Return the id. Raises UndecodableZnode."""
    return fields.text(paths.CLUSTER_ID, fields.load(paths.CLUSTER_ID, data).get("id"), "the id")
