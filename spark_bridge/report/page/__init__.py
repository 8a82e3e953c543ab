"""A plan's report as one page of HTML that needs nothing else: no network, no other file, and no script to be read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files

from spark_bridge.model.summary import Summary
from spark_bridge.report.markup import Node, el, render
from spark_bridge.report.page.brokers import brokers_section, hottest_section
from spark_bridge.report.page.headline import headline
from spark_bridge.report.page.loads import loads_section
from spark_bridge.report.page.movement import movement_section
from spark_bridge.report.page.racks import racks_section
from spark_bridge.report.page.reasons import reasons_section


def html(summary: Summary) -> bytes:
    """Return the page."""
    script = _file("page.js")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),
        el("title", f"Plan: {summary.goal}"),
        el("style", _file("page.css")),
    )
    body = el("body", el("main", *_sections(summary)), el("script", script))
    return render(el("html", head, body, lang="en"))


def _sections(summary: Summary) -> Iterator[Node]:
    yield headline(summary)
    yield loads_section(summary)
    yield from filter(None, (racks_section(summary), movement_section(summary), hottest_section(summary)))
    yield from filter(None, (reasons_section(summary), brokers_section(summary)))


def _policy(script: str) -> str:
    """Return what the page may do: nothing from elsewhere, and no script but its own."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _file(name: str) -> str:
    return files("spark_bridge.report.page").joinpath(name).read_text(encoding="utf-8")
