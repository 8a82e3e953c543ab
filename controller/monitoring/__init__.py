"""Monitoring of a controller: metrics, health pages, the state-change log, and dumps of its state."""

from __future__ import annotations
