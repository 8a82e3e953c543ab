"""Brokers of Apache Kafka's of old releases, and what they need."""

from __future__ import annotations

from controller.handlers.configs import read_min_isrs
from controller.model import registrations
from controller.model.context import ControllerContext
from controller.model.facts import ControllerRegistered, ReleaseSeen
from controller.model.kafka_checks import other_settings
from controller.model.rounds import Rounds, Step, apply, commit, logged, read, until_none_is_left
from transport.kafka.registration import encode_controller, is_controllers
from transport.kafka.releases import PROTOCOL, Release
from transport.log import get_logger
from transport.store import paths
from transport.store.protocol import Create, Delete, Op, Znode

log = get_logger(__name__)


def release_seen(context: ControllerContext, broker_id: int, broker_epoch: int, release: Release) -> Rounds[None]:
    """Take what a connection has shown of a broker's release, unless the broker has registered again since."""
    if not context.is_registered(broker_id, broker_epoch) or context.kafka.releases.get(broker_id) == release:
        return
    if release.protocol is None and context.config.protocol is None:
        text = "a broker does not tell its protocol: let the controller describe the cluster's configs, or set it here"
        log.warning(text, broker=broker_id, setting=PROTOCOL)
    _warn_of_other_settings(context, broker_id, release)
    before = context.kafka.min_isr or context.config.min_insync_replicas
    yield from apply("release", [Step(facts=(ReleaseSeen(broker_id, release),))])
    yield from keep_registration(context)
    # Topics inherit what the brokers have in their files, as kafka-topics sees it.
    if context.kafka.min_isr not in (None, before):
        yield from read_min_isrs(context, list(context.topics))


def _warn_of_other_settings(context: ControllerContext, broker_id: int, release: Release) -> None:
    """Log the settings in which a broker differs from this controller, unless another broker has told the same."""
    if any(known.of_controllers == release.of_controllers for known in context.kafka.releases.values()):
        return
    if others := other_settings(context.config, release):
        text = "a broker has other settings than this controller, and a controller of Kafka's would decide by them"
        log.warning(text, broker=broker_id, settings=others)


def keep_registration(context: ControllerContext) -> Rounds[None]:
    """Keep a registration of our own while a live broker of an old release needs one, and otherwise none.

    It ends with our session. Nothing is changed while the release of a live broker may still turn out to be old.
    """
    needed = context.kafka.need_registration(registrations.alive(context))
    if not context.config.kafka or needed is None or not (needed or context.kafka.is_registered):
        return
    wanted = encode_controller(context.kafka.listeners) if needed else None

    def settle(pending: list[str]) -> Rounds[list[str]]:
        [znode] = yield from read(pending)
        writes = _writes(context.controller.id, znode, wanted)
        if not writes and context.kafka.is_registered is needed:
            return []
        step = Step(writes=writes, facts=(ControllerRegistered(needed),))
        stays = logged("brokers of old releases cannot find this controller: it is tried again when a broker registers")
        refused = yield from commit("registration", [step], on_rejected=stays)
        return pending if refused else []

    yield from until_none_is_left("registration", [paths.broker(context.controller.id)], settle)


def _writes(controller_id: int, found: Znode | None, wanted: bytes | None) -> tuple[Op, ...]:
    """Return the operations that replace what was found; a broker of our id, which should not be, keeps its own."""
    path = paths.broker(controller_id)
    data = None if found is None else found.data
    if data == wanted or (data is not None and not is_controllers(controller_id, data)):
        return ()
    old = () if found is None else (Delete(path, found.stat.version),)
    return old if wanted is None else (*old, Create(path, wanted, ephemeral=True))
