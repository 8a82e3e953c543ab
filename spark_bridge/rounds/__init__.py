"""The rounds of planning: steps over all blocks, chosen by the sums of their tallies. Nothing here sees a partition."""

from __future__ import annotations
