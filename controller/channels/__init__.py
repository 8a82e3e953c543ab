"""Sending to brokers: one channel for each, with a merging backlog."""

from __future__ import annotations
