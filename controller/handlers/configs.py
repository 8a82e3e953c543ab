"""Settings of topics and brokers that change at run time: kept below `/config`, in Kafka's format.

A topic's own setting outranks the default of all brokers, and that outranks what the controller was started with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from controller.context import ControllerContext
from controller.rounds import Rounds, read
from transport.store import formats, paths
from transport.store.protocol import Znode

log = structlog.get_logger(__name__)

UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
_BOOLEANS: Final = {"true": True, "false": False}


def unclean_allowed(context: ControllerContext, topics: Sequence[str]) -> Rounds[frozenset[str]]:
    """Return those of `topics` whose settings allow a replica outside the ISR to lead (reference: Kafka's election).

    Settings that cannot be decoded allow nothing.
    """
    wanted = list(dict.fromkeys(topics))
    default_path = paths.broker_config(None)
    default_znode, *znodes = yield from read([default_path, *map(paths.topic_config, wanted)])
    static = {UNCLEAN_LEADER_ELECTION_ENABLE: str(context.config.unclean_leader_election_enable)}
    default = _decode(default_path, default_znode)
    allowed = set[str]()
    for name, znode in zip(wanted, znodes, strict=True):
        own = _decode(paths.topic_config(name), znode)
        if own is not None and _allows_unclean(name, own, default, static):
            allowed.add(name)
    return frozenset(allowed)


def _allows_unclean(
    topic: str, own: Mapping[str, str], default: Mapping[str, str] | None, static: Mapping[str, str]
) -> bool:
    inherited = {} if default is None else {**static, **default}
    value = {**inherited, **own}.get(UNCLEAN_LEADER_ELECTION_ENABLE, "false")
    verdict = _BOOLEANS.get(value.strip().lower())
    if verdict is None:
        text = "no unclean election: the setting must be true or false, alter it"
        log.error(text, topic=topic, setting=UNCLEAN_LEADER_ELECTION_ENABLE, value=value)
    return verdict or False


def _decode(path: str, znode: Znode | None) -> dict[str, str] | None:
    """Return the settings in a znode, none if it does not exist, None if they cannot be decoded."""
    if znode is None:
        return {}
    try:
        return formats.decode_config(path, znode.data)
    except formats.UndecodableZnode as fault:
        log.error("settings set aside: they cannot be decoded, delete or repair them", fault=str(fault))
        return None
