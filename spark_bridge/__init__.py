"""Bulk plan computation on Spark: snapshots in, plans out.

Runs in a process of its own (`python -m spark_bridge`). `plan`, `snapshot`, `rules`, `dealing` and `evenness` are pure;
only `session` and `removal` import PySpark.
"""

from __future__ import annotations
