"""`python -m tests.house.settings_page`: fill the tables of `docs/configuration.md` from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from klamm.cli.settings import SECTIONS
from transport.dynamic_configs import BROKER_SETTINGS, TOPIC_SETTINGS
from transport.settings import LONG_MAX, Setting, render, settings_of

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def filled(page: str) -> str:
    """Return the page with the right table below each of its headings."""
    tables = {f"[{section}]": _table(settings_of(config).values()) for section, config in SECTIONS.items()}
    tables["Topics"] = _table(TOPIC_SETTINGS.values())
    tables["Brokers, and the default of all brokers"] = _table(BROKER_SETTINGS.values())
    for heading, table in tables.items():
        before, found, rest = page.partition(f"### {heading}\n\n")
        assert found, heading
        page = before + found + table + re.sub(r"\A([|].*\n)+", "", rest)
    return page


def _table(settings: Iterable[Setting]) -> str:
    rows = "".join(f"| `{s.name}` | {s.range.replace('*', '`*`')} | {_default(s)} | {s.doc} |\n" for s in settings)
    return f"| name | valid values | default | description |\n| --- | --- | --- | --- |\n{rows}"


def _default(setting: Setting) -> str:
    if setting.default in {None, ""}:
        return ""
    return "no limit" if setting.default == LONG_MAX else f"`{render(setting.default)}`"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
