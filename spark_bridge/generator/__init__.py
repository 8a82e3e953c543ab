"""Realistic random clusters from a seed, for tests, benchmarks and rehearsals of plans."""

from __future__ import annotations
