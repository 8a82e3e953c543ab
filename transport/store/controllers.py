"""The addresses of controllers in the metadata store."""

from __future__ import annotations

from transport.messages import BrokerEndpoint
from transport.store import formats, paths
from transport.store.protocol import MetadataStore


async def find_controller(store: MetadataStore) -> BrokerEndpoint | None:
    """Return the endpoint of the active controller; None if there is none, or if it has not registered its address.

    Raises StoreError, or UndecodableZnode for a znode that a controller of another kind wrote.
    """
    [holder] = await store.read([paths.CONTROLLER])
    if holder is None:
        return None
    return await find_endpoint(store, formats.decode_controller(holder.data))


async def find_endpoint(store: MetadataStore, controller_id: int) -> BrokerEndpoint | None:
    """Return the registered endpoint of a controller, None if there is none. Raises as `find_controller` does."""
    [endpoint] = await store.read([paths.controller_endpoint(controller_id)])
    return None if endpoint is None else formats.decode_controller_endpoint(controller_id, endpoint.data)
