"""The formats of a plan: Kafka's reassignment JSON, its rollback, and Parquet. Independent of Spark."""

from __future__ import annotations
