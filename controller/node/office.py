"""The office of the active controller, and the readiness of a controller."""

from __future__ import annotations

from attrs import define, field, frozen

from controller.channels.broker_channels import BrokerChannels
from controller.gathered import CaughtUp
from controller.model.context import ControllerContext
from controller.model.election_results import Standby, Won
from controller.node.collector import release
from controller.node.contact import Contact
from controller.node.round_runner import RoundRunner
from controller.progress.poller import ProgressPoller
from transport.store.protocol import SessionState, StoreError


@define
class Office:
    """The state and the parts that only the active controller has."""

    won: Won
    context: ControllerContext
    channels: BrokerChannels
    runner: RoundRunner
    progress: ProgressPoller
    contact: Contact
    caught_up: CaughtUp = field(factory=CaughtUp, init=False)
    is_loaded: bool = False

    async def confirm(self) -> None:
        """Return once it is certain that this office has been held since the call. Raises StoreError if it is not."""
        await self.contact.confirm(self.won)

    async def is_held(self) -> bool:
        """Return whether this office may be answered from; waits while that is in doubt."""
        if self.is_loaded and self.contact.is_certain:
            return True
        try:
            await self.confirm()
        except StoreError:
            return False
        return self.is_loaded

    def close(self) -> None:
        """Stop all communication with brokers, and let go of what was remembered."""
        self.channels.close()
        self.progress.close()
        release()


@frozen
class Readiness:
    """Whether a controller is active or standing by as it should be, and the reason in words."""

    is_ready: bool
    reason: str


def judge_readiness(session: SessionState, office: Office | None, standby: Standby | None) -> Readiness:
    """Return whether a controller is ready: connected, and either active and loaded or standing by as it should."""
    if session is not SessionState.CONNECTED:
        return _not_ready(f"the session with the metadata store is {session.value}")
    if office is not None:
        return Readiness(is_ready=True, reason="active") if office.is_loaded else _not_ready("it loads the cluster")
    if standby is None:
        return _not_ready("it does not stand for election, see its log for failures")
    return Readiness(is_ready=True, reason=f"standing by{_why(standby)}")


def _why(standby: Standby) -> str:
    return f": {standby.reason}" if standby.reason else f" for controller {standby.controller_id}"


def _not_ready(why: str) -> Readiness:
    return Readiness(is_ready=False, reason=f"not ready: {why}")
