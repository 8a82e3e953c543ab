"""What the demo's scenario needs of a cluster, however it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from transport.store.protocol import MetadataStore

BROKERS: Final = (1, 2, 3, 4, 5, 6)
CONTROLLERS: Final = (1001, 1002)
FETCH_BYTES: Final = 32 * 1024
"""Of one fetch: small, so that a replica takes long enough to catch up to be watched."""


class DemoCluster(Protocol):
    """A running cluster."""

    store: MetadataStore
    data_dir: Path

    async def kill(self, id_: int) -> None:
        """End a controller without giving it a chance to resign."""

    async def stop_brokers(self) -> None:
        """End the brokers in good order, so that their logs are at rest."""


def log_dir(data_dir: Path, broker_id: int) -> Path:
    """Return where a broker keeps its logs."""
    return data_dir / f"broker-{broker_id}"
