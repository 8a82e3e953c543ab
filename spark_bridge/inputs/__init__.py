"""Inputs of planning: snapshots, loads and tables of brokers, read and checked, in this process or on Spark.

`read` and `on_spark` return the same rows and report bad ones in the same way: both pass Arrow tables to `checks`, and
the good rows to `join`, on Spark separately for each block.
"""

from __future__ import annotations
