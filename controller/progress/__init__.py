"""The progress of moves: log sizes reported by brokers, and what is derived from them."""

from __future__ import annotations
