"""Fetches pages over HTTP, and reads metrics from them."""

from __future__ import annotations

import trio

Samples = dict[str, float]
"""Values by name and labels as the page shows them, such as `size{broker_id="1"}`."""


async def get(port: int, path: str) -> tuple[int, str]:
    """Return the status and the body of a page on this machine. Raises OSError if nobody listens."""
    received = b""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        while chunk := await stream.receive_some(65536):
            received += chunk
    head, _, body = received.decode().partition("\r\n\r\n")
    return int(head.split(" ", 2)[1]), body


def samples(page: str) -> Samples:
    """Return the samples of a metrics page, with labels in alphabetical order."""
    lines = [line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#")]
    return {_series(series): float(value) for series, _, value in lines}


def _series(series: str) -> str:
    name, _, labels = series.rstrip("}").partition("{")
    return f"{name}{{{','.join(sorted(labels.split(',')))}}}" if labels else name


async def scrape(port: int) -> Samples:
    """Return the metrics of a controller."""
    status, page = await get(port, "/metrics")
    assert status == 200
    return samples(page)
