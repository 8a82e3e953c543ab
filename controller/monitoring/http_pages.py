"""The HTTP pages of a controller: / for browsers, /metrics for scrapers, /healthz and /readyz for probes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Final

import trio

from controller.monitoring.measurements import Measurements
from controller.monitoring.page.assets import HEADERS, assets
from controller.monitoring.page.broadcast import Broadcast
from controller.monitoring.page.snapshot import Snapshots
from controller.node.service import ControllerService
from transport.addresses import address_text
from transport.http import Page, Pages, Stream, not_found, serve_http
from transport.network import Network


class CannotServeMetrics(Exception):
    """The controller cannot listen on the address for metrics; the message is one line with the remedy."""


@asynccontextmanager
async def monitored(service: ControllerService, measurements: Measurements, network: Network) -> AsyncIterator[None]:
    """Serve a service's pages within the block if its settings name a port, and set its `metrics_port`.

    Raises CannotServeMetrics, in an exception group.
    """
    config = service.config
    if config.metrics_port is None:
        yield
        return
    snapshots = Snapshots(service, measurements)
    live = Broadcast(snapshots.stamp, snapshots.take)
    pages = pages_of(service, measurements, live)
    serving = partial(serve_http, network, pages, config.metrics_host, config.metrics_port)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run)
        try:
            service.metrics_port = await nursery.start(serving)
        except OSError as error:
            where = f"{address_text(config.metrics_host, config.metrics_port)} ({error.strerror})"
            raise CannotServeMetrics(
                f"cannot serve metrics on {where}: name others with --metrics-host and --metrics-port"
            ) from None
        yield
        nursery.cancel_scope.cancel()


def pages_of(service: ControllerService, measurements: Measurements, live: Broadcast) -> Pages:
    """Return the pages of a service; `live` keeps the one for browsers up to date."""
    # Imported only if metrics are served.
    from controller.monitoring.metrics import CONTENT_TYPE, ControllerMetrics  # noqa: PLC0415

    metrics = ControllerMetrics(
        measurements,
        queue_size=service.queue_size,
        events=service.statistics,
        session_state=lambda: service.store.state,
        quarantined=service.quarantine_size,
    )
    pages: Final[dict[str, Callable[[], Page | Stream]]] = {
        "/metrics": lambda: Page(metrics.text(), content_type=CONTENT_TYPE),
        # The answer itself shows that the process is alive and its event loop is running.
        "/healthz": lambda: Page(b"ok\n"),
        "/readyz": partial(_readiness, service),
        **{path: partial(_same, asset) for path, asset in assets().items()},
        "/events": partial(live.answer, HEADERS),
    }

    async def page_at(path: str) -> Page | Stream:
        if path == "/metrics":
            metrics.moves = await service.moves()
        return pages[path]() if path in pages else not_found(pages)

    return page_at


def _same(page: Page) -> Page:
    return page


def _readiness(service: ControllerService) -> Page:
    readiness = service.readiness()
    status = HTTPStatus.OK if readiness.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return Page(f"{readiness.reason}\n".encode(), status)
