"""The contents of the distribution."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import pytest

from tests.house.requirements import DOCUMENT

ROOT: Final = DOCUMENT.parents[1]
PACKAGES: Final = ("actors", "broker", "controller", "klamm", "simulator", "spark_bridge", "transport")


@pytest.mark.requirement("E5")
def test_it_is_built_on_what_was_given_and_laid_out_as_was_agreed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    named = [*project["project"]["dependencies"], *extras["spark"], *extras["testing"], *extras["dev"]]
    distributions = {re.split(r"[<>=\[]", requirement)[0] for requirement in named}
    assert distributions >= {"trio", "kazoo", "pyspark", "attrs", "msgpack", "pytest-trio"}
    assert sorted(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == list(PACKAGES)
    assert [name for name in PACKAGES if not (ROOT / name / "__init__.py").is_file()] == []
