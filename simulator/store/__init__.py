"""The simulated ZooKeeper ensemble: its servers, sessions, commits and lags."""

from __future__ import annotations
