"""How far moves are: what brokers say of their logs, and what is told of it."""

from __future__ import annotations
