"""Elements: what is text stays text."""

from __future__ import annotations

from spark_bridge.report.markup import el, render

PAGE = """<!DOCTYPE html>
<p title="&quot;&gt;<script&gt;">&lt;b&gt; &amp; <i>&lt;/i&gt;</i> tail &lt;</p>"""


def test_texts_and_attributes_are_escaped() -> None:
    page = render(el("p", "<b> & ", el("i", "</i>"), " tail <", title='"><script>')).decode()
    assert page == PAGE


def test_names_of_attributes_are_those_of_html() -> None:
    node = el("rect", class_="bar", aria_label="x", viewBox="0 0 1 1", width=1 / 3, height=2.0, title=None)
    assert node.attrib == {"class": "bar", "aria-label": "x", "viewBox": "0 0 1 1", "width": "0.33", "height": "2"}


def test_what_is_not_there_is_left_out() -> None:
    assert len(el("p", None, el("b"), None)) == 1
