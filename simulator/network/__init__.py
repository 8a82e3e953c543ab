"""The simulated network: links with latency and bandwidth, pipes, and streams that break."""

from __future__ import annotations
