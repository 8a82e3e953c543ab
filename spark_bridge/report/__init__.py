"""A plan's summary as people read it: what to look at first, JSON, and a page of HTML. Pure: values in, text out."""

from __future__ import annotations
