"""The knowledge and the decisions of a controller. Pure: values, tables and functions, no I/O and no clock."""

from __future__ import annotations
