"""What brokers are told: one channel for each, with a backlog that merges."""

from __future__ import annotations
