"""Bulk plans: snapshots in, plans out, in memory or on Spark.

Runs in a process of its own (`python -m spark_bridge`). `planning` makes a plan from start to end: `inputs` reads, the
`rounds` decide from sums over all blocks, the `kernel` has the steps of one block, `rules` checks the plan, `outputs`
and `report` write it. Only `engines`, `inputs`, `outputs` and `process` know of PySpark.
"""

from __future__ import annotations
