"""The process that plans: its requests, the Spark session that it keeps, and the Java that Spark needs."""

from __future__ import annotations
