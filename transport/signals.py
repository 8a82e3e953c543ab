"""The signals by which operators hold a rollout up: a file that exists, or a page that says no."""

from __future__ import annotations

from transport.host import Host
from transport.pages import shown


async def signal_of(pause_file: str, go_url: str, host: Host) -> str:
    """Return why the signals that there are say no, empty if they say yes."""
    if pause_file:
        try:
            is_there = await host.has_file(pause_file)
        except OSError as error:
            return f"{pause_file} cannot be looked for: {error.strerror}"
        if is_there:
            return f"{pause_file} exists"
    if not go_url:
        return ""
    fault = await host.page_fault(go_url)
    return "" if fault is None else f"{shown(go_url)} {fault}"
