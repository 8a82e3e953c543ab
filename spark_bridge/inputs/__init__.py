"""Inputs of planning: snapshots, loads and tables of brokers, read and checked, in this process or on Spark.

`read` and `on_spark` give the same rows and say the same of a bad one: both hand Arrow tables to `checks`, and what is
good to `join`, on Spark for each block by itself.
"""

from __future__ import annotations
