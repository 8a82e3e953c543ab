"""A rolling upgrade from the last release and back, with real processes of both trees, and what it rests on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.rolling_upgrade.fleet import BROKERS, CONTROLLERS, NAMES, Fleet
from tests.cluster.rolling_upgrade.trees import LAST_RELEASE, ROOT, NoSuchTree, Tree, current, previous
from tests.cluster.rolling_upgrade.upgrade import drawn, upgrade_and_back

LOG: Final = """\
10:00:00.000000 [info     ] elected controller=1001 epoch=2
10:00:01.000000 [info     ] resigned controller=1001 epoch=2
"""


@pytest.mark.soak
@pytest.mark.requirement("D1", "D6", "D12")
@pytest.mark.parametrize("seed", [None, 1], ids=["controllers first", "another order"])
async def test_an_upgrade_and_the_way_back_lose_nothing(tmp_path: Path, seed: int | None) -> None:
    upgrade = await upgrade_and_back(tmp_path, previous(LAST_RELEASE, tmp_path / "previous"), current(), seed)
    assert upgrade.all_faults() == []
    assert upgrade.read_back >= upgrade.load.total() > 0
    # A rollout was in progress at each restart while the cluster was mixed.
    assert len(upgrade.flown) == 2 * len(NAMES) + 1
    assert sum(map(bool, upgrade.flown)) >= 2 * len(BROKERS)


# --- what it rests on -------------------------------------------------------------------------------------------


def test_a_command_runs_the_tree_that_it_names(tmp_path: Path) -> None:
    """The current tree is installed, and is the working directory; another one has to be found before it."""
    other = tmp_path / "klamm"
    other.mkdir()
    (other / "__init__.py").write_text("")
    (other / "__main__.py").write_text("def main() -> None:\n    print('the other tree')\n")
    for tree, said in ((Tree("old", tmp_path), "the other tree"), (current(), "klamm, version")):
        command = tree.command(tmp_path / "never", "--version")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert said in done.stdout, done.stderr


def test_a_tree_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTree, match=r"revision no-such-revision is not in the repository of .*: name one with"):
        previous("no-such-revision", tmp_path / "previous")


def test_a_seed_draws_orders_of_all_processes() -> None:
    assert drawn(None) == (list(NAMES), list(NAMES))
    assert drawn(1) == drawn(1) != drawn(2)
    assert [sorted(order) for order in drawn(1)] == [sorted(NAMES)] * 2


@pytest.mark.parametrize(
    ("more", "stops", "fault"),
    [
        ("", 1, None),
        ("", 0, "controller-1001 resigned 1 times, and was stopped 0 times"),
        ("10:00:02.0 [error    ] resigning after a fault during=Failover\n", 1, "lost its office"),
        ("10:00:02.0 [warning  ] deposed controller=1001 reason=x\n", 1, "lost its office"),
        ("10:00:02.0 [warning  ] metadata store failed: loading again\n", 1, "lost its office"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'x'\n", 1, "a traceback: KeyError: 'x'"),
        ("Traceback (most recent call last):\n  File\nRuntimeError: broker cannot lead t-0, as a fault\n", 1, None),
    ],
)
def test_a_controller_that_resigns_is_found(tmp_path: Path, more: str, stops: int, fault: str | None) -> None:
    fleet = Fleet.of(tmp_path, current())
    for node in fleet.nodes.values():
        node.log.write_text("")
    name = f"controller-{CONTROLLERS[0]}"
    fleet.nodes[name].log.write_text(LOG + more)
    fleet.stops[name] = stops
    fleet.judge_logs()
    assert fleet.faults == [] if fault is None else any(fault in each for each in fleet.faults)


def test_the_launcher_refuses_a_tree_without_klamm(tmp_path: Path) -> None:
    command = Tree("old", tmp_path).command(tmp_path / "never", "--version")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"not from {tmp_path}" in done.stderr
    assert sys.executable == command[0]
