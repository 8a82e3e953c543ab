"""The process that plans: the requests it is sent, the Spark session that it keeps, and the Java that Spark needs."""

from __future__ import annotations
