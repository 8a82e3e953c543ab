"""Where controllers listen, as the metadata store knows it."""

from __future__ import annotations

from transport.messages import BrokerEndpoint
from transport.store import formats, paths
from transport.store.protocol import MetadataStore


async def find_controller(store: MetadataStore) -> BrokerEndpoint | None:
    """Return the endpoint of the active controller, None if there is none or it has not said where it listens.

    Raises StoreError, or UndecodableZnode if somebody else wrote there.
    """
    [holder] = await store.read([paths.CONTROLLER])
    if holder is None:
        return None
    return await find_endpoint(store, formats.decode_controller(holder.data))


async def find_endpoint(store: MetadataStore, controller_id: int) -> BrokerEndpoint | None:
    """Return where a controller said that it listens, None if it did not. Raises as `find_controller` does."""
    [endpoint] = await store.read([paths.controller_endpoint(controller_id)])
    return None if endpoint is None else formats.decode_controller_endpoint(controller_id, endpoint.data)
