"""Observation points of a controller: what observers and instruments see, and when."""

from __future__ import annotations
