"""What a plan is written as: Kafka's reassignment JSON, the way back, and Parquet. Knows no Spark."""

from __future__ import annotations
