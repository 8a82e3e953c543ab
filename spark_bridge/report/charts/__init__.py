"""Charts of a plan: Python places their marks, a template writes them as SVG, and the page's style colours them."""

from __future__ import annotations
