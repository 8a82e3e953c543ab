"""Restarting a task that fails."""

from __future__ import annotations

import pytest
import structlog
import trio
from structlog.testing import capture_logs

from actors import Backoff, supervise

pytestmark = pytest.mark.usefixtures("autojump_clock")


class _Flaky:
    """Fails with these exceptions in turn, each after so many seconds, and then comes to its end."""

    def __init__(self, *faults: Exception, lasting: float = 0.0) -> None:
        self._faults = list(faults)
        self._lasting = lasting
        self.starts: list[float] = []

    async def run(self) -> None:
        self.starts.append(trio.current_time())
        await trio.sleep(self._lasting)
        if self._faults:
            raise self._faults.pop(0)

    def pauses(self) -> list[float]:
        return [later - earlier - self._lasting for earlier, later in zip(self.starts, self.starts[1:], strict=False)]


def _backoff() -> Backoff:
    return Backoff(1.0, 10.0, jitter=lambda: 1.0)


async def test_it_runs_again_after_each_fault_with_back_off_and_ends_when_the_task_does() -> None:
    faults = [OSError(1), OSError(2), OSError(3)]
    flaky = _Flaky(*faults)
    with capture_logs() as logs:
        await supervise(flaky.run, name="election", backoff=_backoff(), log=structlog.get_logger())
    assert flaky.pauses() == pytest.approx([1, 2, 4])
    assert [(log["event"], log["task"], log["exc_info"]) for log in logs] == [
        ("restarting after a fault", "election", fault) for fault in faults
    ]


async def test_a_healthy_period_resets_the_back_off() -> None:
    ailing, healthy = (_Flaky(*map(OSError, range(3)), lasting=seconds) for seconds in (59.0, 60.0))
    await supervise(ailing.run, name="a", backoff=_backoff(), healthy_after=60)
    await supervise(healthy.run, name="b", backoff=_backoff(), healthy_after=60)
    assert ailing.pauses() == pytest.approx([1, 2, 4])
    assert healthy.pauses() == pytest.approx([1, 1, 1])


@pytest.mark.parametrize(
    "fault",
    [
        KeyError(),
        ExceptionGroup("mixed", [OSError(), KeyError()]),
        ExceptionGroup("mixed below", [OSError(), ExceptionGroup("", [KeyError()])]),
    ],
)
async def test_other_faults_take_the_parent_down(fault: Exception) -> None:
    flaky = _Flaky(fault)
    with pytest.raises(type(fault)) as caught:
        await supervise(flaky.run, name="a", backoff=_backoff(), restart_on=(OSError, ValueError))
    assert caught.value is fault
    assert len(flaky.starts) == 1


async def test_a_group_of_nothing_but_faults_to_restart_on_restarts() -> None:
    flaky = _Flaky(ExceptionGroup("", [OSError(), ExceptionGroup("", [ValueError()])]))
    await supervise(flaky.run, name="a", backoff=_backoff(), restart_on=(OSError, ValueError))
    assert len(flaky.starts) == 2


async def test_cancelling_is_no_fault() -> None:
    with trio.move_on_after(5) as scope:
        await supervise(trio.sleep_forever, name="a", backoff=_backoff())
    assert scope.cancelled_caught
    flaky = _Flaky(*map(OSError, range(100)))
    with trio.move_on_after(2) as scope:  # in the second pause
        await supervise(flaky.run, name="a", backoff=_backoff())
    assert scope.cancelled_caught
    assert len(flaky.starts) == 2
