"""The verdicts on mutants that no random run notices, and whether they are right."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

RECORD: Final = Path(__file__).parent / "verdicts.toml"


@frozen
class Verdicts:
    """By the name of a mutant, why nobody can see it (`equivalent`) or why it is left to a test (`tests`)."""

    equivalent: Mapping[str, str]
    tests: Mapping[str, str]

    def fault(self, name: str, killed_by: str) -> str | None:
        """Return what is wrong, if anything: no verdict on a survivor, or one that does not hold.

        A mutant that is left to a test may be killed by a random run as well: which seed notices what changes easily.
        """
        if name in self.equivalent and killed_by != "nothing":
            return f"equivalent, but killed by {killed_by}: {name}"
        if name in self.tests and killed_by == "nothing":
            return f"no test notices it any longer: {name}"
        if killed_by == "nothing" and name not in self.equivalent:
            return f"nothing notices it, and it has no verdict: {name}"
        return None


def load() -> Verdicts:
    """Read the recorded verdicts."""
    tables = tomllib.loads(RECORD.read_text())
    return Verdicts(tables["equivalent"], tables["tests"])
