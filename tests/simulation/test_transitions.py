"""Replicas that have not begun, or that a move has deleted, change no phase: no transition of theirs is refused."""

from __future__ import annotations

import pytest

from klamm.testing import run_scenario

DELETED_BEFORE_THE_LAST_WRITE = """
seed: 41618
in_order: false
cluster: {store_latency: 0.01}
topics: {t1: [[2], [3]]}
lasts: 1.8
events:
  - at: 1
    reassign: {t1-0: [1], t1-1: [1]}
  - at: 1.3
    fail_disk: 1
  - at: 1.3
    allow: {path: /brokers/topics/t1, access: read}
"""

ADDED_BY_A_TOOL_AND_NOT_BEGUN = """
seed: 49668
in_order: false
cluster: {brokers: 4, session_timeout: 4}
topics: {t1: [[3, 4], [3, 4]], t2: [[2]]}
load: {per_second: 1, partitions: [t1-1, t2-0]}
lasts: 4.9
events:
  - at: 0
    when: anything commits B3
    depose: true
  - at: 1
    reassign: {t1-0: [1]}
  - at: 2
    reassign: {t1-1: [1]}
  - at: 2
    at_commit: {nodes: [controller], moment: before, then: [{disconnect: same}]}
  - at: 2
    fail_disk: 1
    for: 0.1
    then: [{restart: same}]
  - at: 2.4
    edit_topic: {topic: t1, edit: one_more}
"""


@pytest.mark.parametrize("scenario", [DELETED_BEFORE_THE_LAST_WRITE, ADDED_BY_A_TOOL_AND_NOT_BEGUN])
def test_no_transition_is_illegal(scenario: str) -> None:
    assert run_scenario(scenario) == []
