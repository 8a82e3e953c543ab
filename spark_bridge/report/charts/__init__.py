"""Plots of a plan, as SVG that a page holds: sized for a column of 560 pixels, coloured by the page's style."""

from __future__ import annotations
