"""What must hold before one of Klamm's controllers governs Apache Kafka's brokers, judged from what was found.

A controller with the name of a wrong listener could address no broker, and one with the clients' listener would send
brokers to an address at which they do not look for a controller. So a controller compares its settings with those of a
live broker before it stands for election.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import attrs
from attrs import frozen

from controller.config import ControllerConfig
from transport.kafka.listeners import BrokerListeners
from transport.kafka.releases import Release
from transport.metadata import BrokerRegistration, Listener
from transport.settings import render, settings_of


class Weight(Enum):
    """The weight of a finding."""

    LOOK = "look"
    """Something to know or to change; no reason to wait."""

    UNKNOWN = "could not tell"
    """A condition could not be checked: an operator has to say that it holds."""

    DANGER = "danger"
    """With these settings, the controller must not take office."""


EXIT_CODES: Final = {Weight.DANGER: 4, Weight.UNKNOWN: 1, Weight.LOOK: 3}
"""The exit codes of the command that checks, the gravest first; 0 without a finding."""


@frozen
class Finding:
    """One thing that was found, in one line with its remedy."""

    weight: Weight
    text: str

    def __str__(self) -> str:
        return f"{self.weight.value}: {self.text}"


@frozen
class Live:
    """A live broker: its registration, None with the reason if that cannot be used, and the listeners that it has."""

    broker_id: int
    registration: BrokerRegistration | None
    listeners: tuple[Listener, ...]
    fault: str = ""


def texts(findings: Iterable[Finding], *weights: Weight) -> list[str]:
    """Return the texts of the findings of some weights."""
    return [finding.text for finding in findings if finding.weight in weights]


def exit_code(findings: Sequence[Finding]) -> int:
    """Return the exit code for findings: that of the gravest, 0 if there are none."""
    weights = {finding.weight for finding in findings}
    return next((code for weight, code in EXIT_CODES.items() if weight in weights), 0)


# --- the listeners in the registrations ---------------------------------------------------------------------------


def judge_registrations(config: ControllerConfig, live: Sequence[Live], told: BrokerListeners | None) -> list[Finding]:
    """Judge whether any live broker has the listener to which the controller sends its orders.

    `told` are the settings of one of the brokers, None if they are not known.
    """
    if not live or any(broker.registration for broker in live):
        return []
    names = sorted({listener.name for broker in live for listener in broker.listeners})
    if not names:
        return [Finding(Weight.DANGER, f"no registration of a live broker can be used: {live[0].fault}")]
    if told is None:
        cure = "start the controller with --inter-broker-listener-name and the one that they use among themselves"
    else:
        cure = f"start the controller with {options(told)}"
    ids = _brokers([broker.broker_id for broker in live])
    have = f"{ids} {'have' if len(live) > 1 else 'has'} {', '.join(names)}"
    text = f"no live broker has a listener named {config.orders_listener_name}: {have}: {cure}"
    return [Finding(Weight.DANGER, text)]


def judge_partly_missing(config: ControllerConfig, live: Sequence[Live]) -> list[Finding]:
    """Judge whether the controller could address all live brokers, if it can address some."""
    unusable = [broker for broker in live if broker.registration is None]
    if len(unusable) == len(live):
        return []
    name = config.orders_listener_name
    named = {broker.broker_id: [listener.name for listener in broker.listeners] for broker in unusable}
    lacking = [id_ for id_, names in named.items() if names and name not in names]
    found = []
    if lacking:
        text = f"{_brokers(lacking)} would get no orders: no listener named {name}, which others have: add it there"
        found.append(Finding(Weight.DANGER, text))
    others = [broker for broker in unusable if broker.broker_id not in lacking]
    return found + [Finding(Weight.DANGER, broker.fault) for broker in others]


# --- the settings of brokers --------------------------------------------------------------------------------------


def judge_listeners(
    config: ControllerConfig, advertised: Sequence[str], broker_id: int, told: BrokerListeners | None
) -> list[Finding]:
    """Compare the controller's listeners with the settings of a broker; `told` is None if it does not tell them."""
    if told is None:
        text = (
            f"broker {broker_id} does not let this controller read its listeners: allow it to describe the cluster's"
            f" configs, or make sure that {config.inter_broker_listener_name.upper()} is the listener that the brokers"
            " use among themselves"
        )
        return [Finding(Weight.UNKNOWN, text)]
    ours = config.inter_broker_listener_name.upper()
    found = []
    if told.inter_broker != ours:
        text = f"the brokers use listener {told.inter_broker} among themselves, and this controller is set to {ours}"
        found.append(Finding(Weight.DANGER, f"{text}: start it with {options(told)}"))
    control = config.control_plane_listener_name and config.control_plane_listener_name.upper()
    if told.control_plane != control:
        text = f"the brokers' control.plane.listener.name is {told.control_plane or 'not set'}"
        text += f", and this controller's is {control or 'not set'}"
        found.append(Finding(Weight.DANGER, f"{text}: start it with {options(told)}"))
    hidden = [name for name in told.names if name not in advertised]
    if hidden and not found:
        text = f"clients at {', '.join(hidden)} find no controller, because this one has no listener of that name"
        text += f": topics are created and moves begun elsewhere, or start it with {options(told)}"
        found.append(Finding(Weight.LOOK, text))
    return found


def options(told: BrokerListeners) -> str:
    """Return the options of a controller that fit the settings of a broker."""
    control = f" --control-plane-listener-name {told.control_plane}" if told.control_plane else ""
    listeners = ",".join(f"{name}://HOST:PORT" for name in told.names)
    return f"--inter-broker-listener-name {told.inter_broker}{control} --listeners {listeners}"


def other_settings(config: ControllerConfig, release: Release) -> list[str]:
    """Return the settings, as name=value, by which the Kafka controller of a broker would decide otherwise."""
    values = attrs.asdict(config)
    ours = {one.name: render(values[field]) for field, one in settings_of(ControllerConfig).items()}
    return [f"{name}={told}" for name, told in release.of_controllers if told != ours[name]]


# --- ids and the cluster ------------------------------------------------------------------------------------------


def no_cluster(chroot: str) -> Finding:
    """Return the finding that the chroot is not that of a Kafka cluster."""
    text = (
        f"there is no /cluster/id below {chroot}, so no broker of Apache Kafka has ever started there:"
        " check the chroot of --zookeeper, or start a broker"
    )
    return Finding(Weight.DANGER, text)


def id_of_broker(controller_id: int, topics: Mapping[str, tuple[int, ...]]) -> Finding:
    """Return the finding that assignments name the controller's id as a broker's."""
    name, partitions = next(iter(topics.items()))
    text = (
        f"id {controller_id} is that of a broker, which has a replica of {name}-{partitions[0]}"
        f" and of others in {len(topics)} topic{'s' * (len(topics) > 1)}: give the controller an id that no broker has"
    )
    return Finding(Weight.DANGER, text)


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' * (len(ids) > 1)} {', '.join(map(str, ids))}"
