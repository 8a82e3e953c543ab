"""The interface between the demo's scenario and its cluster, whichever way that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from transport.store.protocol import MetadataStore

BROKERS: Final = (1, 2, 3, 4, 5, 6)
CONTROLLERS: Final = (1001, 1002)
FETCH_BYTES: Final = 32 * 1024
"""The size of one fetch: small, so that a replica takes long enough to catch up to be watched."""


class DemoCluster(Protocol):
    """A running cluster."""

    store: MetadataStore
    data_dir: Path

    async def kill(self, id_: int) -> None:
        """Kill a controller without giving it a chance to resign."""

    async def stop_brokers(self) -> None:
        """Stop the brokers cleanly, so that their logs no longer change."""


def log_dir(data_dir: Path, broker_id: int) -> Path:
    """Return the log directory of a broker."""
    return data_dir / f"broker-{broker_id}"
