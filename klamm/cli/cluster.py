"""`klamm cluster`: an overview of the cluster."""

from __future__ import annotations

from typing import Any

import click

from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.output import print_document, print_table
from transport.addresses import address_text
from transport.messages import UNKNOWN, DescribeClusterResponse, DescribedBroker

_FACTS = (
    *("controller_epoch", "topics", "topics_being_deleted", "partitions", "offline", "under_replicated"),
    *("under_min_isr", "without_preferred_leader", "being_reassigned", "quarantined"),
)
_BROKER_COLUMNS = ("id", "address", "rack", "epoch", "leaders", "replicas", "state")


@click.group()
def cluster() -> None:
    """Describe the cluster as a whole."""


@cluster.command()
@output_option
@cluster_options
def describe(cluster: Cluster, output: str) -> None:
    """Show the controller, the brokers, and counts of partitions."""
    found = cluster.ask(lambda admin: admin.describe_cluster())
    brokers = [_broker(broker) for broker in found.brokers]
    if output != "table":
        print_document({**_summary(found), "brokers": brokers}, output)
        return
    print_table(("cluster", ""), [(name.replace("_", " "), value) for name, value in _summary(found).items()])
    click.echo()
    print_table(_BROKER_COLUMNS, [tuple(broker.values()) for broker in brokers])


def _summary(found: DescribeClusterResponse) -> dict[str, Any]:
    controller = found.controller
    at = address_text(controller.host, controller.port) if controller.host else None
    named = {"controller": _known(controller.id), "controller_address": at}
    return named | {name: _known(getattr(found, name)) for name in _FACTS}


def _known(value: object) -> object:
    """Return a value, None for one that the cluster does not tell."""
    return None if value == UNKNOWN else value


def _broker(broker: DescribedBroker) -> dict[str, Any]:
    is_addressable = bool(broker.endpoint.host)
    return {
        "id": broker.endpoint.id,
        "address": address_text(broker.endpoint.host, broker.endpoint.port) if is_addressable else None,
        "rack": broker.endpoint.rack,
        "epoch": _known(broker.epoch),
        "leaders": broker.leaders,
        "replicas": broker.replicas,
        "state": _state(broker),
    }


def _state(broker: DescribedBroker) -> str:
    if broker.fault:
        return f"unusable: {broker.fault}"
    return "shutting down" if broker.is_shutting_down else "live"
