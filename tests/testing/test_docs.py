"""The code in docs/testing.md runs, and its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from klamm.testing import SimulatedCluster

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)


def test_what_the_docs_print_passes_as_it_is_printed(tmp_path: Path) -> None:
    files = {name: block for block in BLOCKS for name in re.findall(r"\A# (\w+\.py)\n", block)}
    for name, block in files.items():
        (tmp_path / name).write_text(block, encoding="utf-8")
    assert len(files) == 8
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


def test_the_first_test_of_the_docs_has_ten_lines() -> None:
    [test] = [block for block in BLOCKS if block.startswith("# test_orders.py")]
    assert len(test.splitlines()) == 1 + 10


HUNT = "test_random_faults_find_planted_bugs"
"""The example that takes longest: it runs seeds until one of them catches each of two bugs."""


@pytest.mark.parametrize("selected", [f"not {HUNT}", pytest.param(HUNT, marks=pytest.mark.soak)], ids=["quick", "hunt"])
def test_the_examples_pass_and_are_what_the_docs_print(selected: str) -> None:
    examples = [ROOT / "examples" / name for name in ("test_with_cluster.py", "test_planted_bug.py")]
    code = "\n".join(example.read_text(encoding="utf-8") for example in examples)
    printed = [block for block in BLOCKS if not block.startswith("# ")]
    assert len(printed) == 3
    assert all(block in code for block in printed)
    done = run_pytest(ROOT, "-p", "klamm.testing.plugin", "-k", selected, *map(str, examples))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cluster_can_do_what_the_table_of_the_docs_names() -> None:
    codes = [
        code for row in re.findall(r"^\| .*? \| (.*) \|$", DOCS, re.MULTILINE) for code in re.findall(r"`(.+?)`", row)
    ]
    # A method by name or called, or an attribute of `c`; not `trio.sleep` and `wipe=True`.
    matches = [re.match(r"(?:await )?(?:c\.)?(\w+)(?![\w.=])", code) for code in codes if code != "await"]
    names = {match[1] for match in matches if match is not None}
    assert names >= {"reassign", "crash", "isolate", "crash_at", "until", "brokers", "settle"}
    assert sorted(name for name in names if not hasattr(SimulatedCluster, name)) == []
