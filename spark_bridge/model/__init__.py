"""The values of planning: brokers, blocks of partitions, goals, the summary of a plan. Pure: no I/O, no Spark."""

from __future__ import annotations
