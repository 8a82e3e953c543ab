"""HTML and SVG as a tree: whatever is in a text or an attribute is escaped, as there is no other way to write it."""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree as ET

Node = ET.Element
Content = Node | str | float | None

_DOCTYPE: Final = "<!DOCTYPE html>\n"


def el(tag: str, *content: Content, **attributes: str | float | None) -> Node:
    """Return an element.

    Args:
        tag: Its name.
        content: Elements and texts, in order; None is left out.
        attributes: Its attributes; `_` in a name stands for `-`, and one at the end is dropped (`class_`). Those that
            are None are left out, and numbers are rounded to what a screen can show.
    """
    node = Node(tag, {_name(name): _text(value) for name, value in attributes.items() if value is not None})
    for item in content:
        if isinstance(item, ET.Element):
            node.append(item)
        elif item is not None:
            _append_text(node, _text(item))
    return node


def render(page: Node) -> bytes:
    """Return a page as a file has it."""
    return (_DOCTYPE + ET.tostring(page, encoding="unicode", method="html")).encode("utf-8", "xmlcharrefreplace")


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _append_text(node: Node, text: str) -> None:
    if len(node):
        node[-1].tail = (node[-1].tail or "") + text
    else:
        node.text = (node.text or "") + text
