"""The page for browsers: one read-only view of the cluster, kept up to date by server-sent events."""

from __future__ import annotations
