"""Mutants are drawn from a seed, differ from the product, and are noticed."""

from __future__ import annotations

import os
import signal

import pytest

from controller.model import elections
from simulator.random_run.plan import draw
from simulator.random_run.run import run
from tests.simulation.hunt import Died, each_forked, first_catch
from tests.simulation.mutation import mutants, verdicts
from tests.simulation.mutation.campaign import modules
from tests.simulation.mutation.mutants import Mutant, apply, changed_text, drawn, mutants_of
from tests.simulation.mutation.verdicts import Verdicts

ELECTIONS = "controller/model/elections.py"


def test_the_same_seed_draws_the_same_mutants() -> None:
    first = drawn(modules(), 40, 7)
    assert first == drawn(modules(), 40, 7)
    assert first != drawn(modules(), 40, 8)


def test_mutants_are_drawn_from_every_folder() -> None:
    paths = {mutant.path.split("/")[1] for mutant in drawn(modules(), 120, 1)}
    assert paths == {"handlers", "model", "channels", "node"}


def test_a_mutant_shows_what_it_changes() -> None:
    [mutant] = [each for each in mutants_of(ELECTIONS) if each.function == "preferred" and each.kind == "and/or"]
    assert str(mutant).startswith(f"{ELECTIONS}:")
    changed = "is_able = bool(first) or first[0] in candidate.online or first[0] in isr or (not candidate.is_held)"
    assert changed_text(mutant) == changed


def test_no_two_mutants_have_the_same_name() -> None:
    names = [mutant.name for path in modules() for mutant in mutants_of(path)]
    assert len(names) == len(set(names))


def test_an_edit_of_one_function_leaves_the_mutants_of_others_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [mutant.name for mutant in drawn([ELECTIONS], 60, 1)]

    def without_one(path: str) -> list[Mutant]:
        return [mutant for mutant in mutants_of(path) if mutant.function != "preferred"]

    monkeypatch.setattr(mutants, "mutants_of", without_one)
    after = [mutant.name for mutant in drawn([ELECTIONS], 60, 1)]
    kept = [name for name in before if " preferred " not in name]
    assert len(kept) < len(before)
    assert set(kept) <= set(after)


def test_every_verdict_is_on_a_mutant_that_exists() -> None:
    known = verdicts.load()
    assert {*known.equivalent, *known.tests} <= {mutant.name for path in modules() for mutant in mutants_of(path)}
    assert known.equivalent.keys().isdisjoint(known.tests)


@pytest.mark.parametrize(
    ("name", "killed_by", "has_fault"),
    [
        ("unknown", "seeds", False),
        ("unknown", "tests", False),
        ("unknown", "nothing", True),
        ("equivalent", "nothing", False),
        ("equivalent", "seeds", True),
        ("equivalent", "tests", True),
        ("left to a test", "nothing", True),
        ("left to a test", "tests", False),
        ("left to a test", "seeds", False),
    ],
)
def test_a_survivor_needs_a_verdict_and_a_verdict_must_hold(name: str, killed_by: str, *, has_fault: bool) -> None:
    known = Verdicts({"equivalent": "because"}, {"left to a test": "because"})
    assert (known.fault(name, killed_by) is not None) is has_fault


def test_log_lines_are_left_alone() -> None:
    found = [mutant for path in modules() for mutant in mutants_of(path) if mutant.kind == "drop statement"]
    assert found
    assert not [mutant for mutant in found if mutant.text.startswith("log.")]


def _with_mutant(digests: dict[int, str]) -> int | None:
    bumps = [each for each in mutants_of(ELECTIONS) if each.text == "current.leader_epoch + 1"]
    [mutant] = [each for each in bumps if each.function == "led_by"]
    apply(mutant)
    return first_catch(digests, digests).seed


def test_a_mutant_is_caught_in_a_child_process_and_leaves_this_one_alone() -> None:
    code = elections.led_by.__code__
    digests = {seed: run(draw(seed)).digest for seed in range(1, 4)}
    [(_, seed)] = each_forked(_with_mutant, [digests], jobs=1)
    assert seed in digests
    assert elections.led_by.__code__ is code


def _die(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_child_process_that_dies_is_reported() -> None:
    assert list(each_forked(_die, [1, 2], jobs=1)) == [(1, Died(-signal.SIGKILL)), (2, Died(-signal.SIGKILL))]


def test_a_sound_product_has_no_catch() -> None:
    digests = {seed: run(draw(seed)).digest for seed in (1, 2)}
    catch = first_catch(digests, digests)
    assert (catch.seed, catch.changed) == (None, 0)


def test_a_run_that_does_not_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr("tests.simulation.hunt.run", endless)
    monkeypatch.setattr("tests.simulation.hunt.SEED_SECONDS", 0.2)
    catch = first_catch([1], {})
    assert catch.seed == 1
    assert "Endless" in catch.text
