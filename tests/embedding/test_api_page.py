"""docs/api.md lists the names that programs import, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import klamm
import klamm.testing

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`klamm.*?) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("module", [klamm, klamm.testing], ids=lambda module: module.__name__)
def test_the_page_lists_each_public_name_once(module: ModuleType) -> None:
    names = [name for row in ROWS for name in re.findall(rf"`{re.escape(module.__name__)}\.(\w+)`", row)]
    assert sorted(names) == sorted(module.__all__)
    assert [name for name in names if not hasattr(module, name)] == []


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_code_names_what_exists(block: str) -> None:
    compile(block, "docs/api.md", "exec")
    assert [name for name in re.findall(r"klamm\.(\w+)", block) if name not in klamm.__all__] == []
