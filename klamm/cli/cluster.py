"""`klamm cluster`: an overview of the cluster."""

from __future__ import annotations

from typing import Any

import click

from controller.admin.client import AdminClient
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.output import print_document, print_table
from transport.messages import DescribeClusterResponse, DescribedBroker

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
    found = cluster.ask(AdminClient.describe_cluster)
    brokers = [_broker(broker) for broker in found.brokers]
    if output != "table":
        print_document({**_summary(found), "brokers": brokers}, output)
        return
    print_table(("cluster", ""), [(name.replace("_", " "), value) for name, value in _summary(found).items()])
    click.echo()
    print_table(_BROKER_COLUMNS, [tuple(broker.values()) for broker in brokers])


def _summary(found: DescribeClusterResponse) -> dict[str, Any]:
    controller = found.controller
    named = {"controller": controller.id, "controller_address": f"{controller.host}:{controller.port}"}
    return named | {name: getattr(found, name) for name in _FACTS}


def _broker(broker: DescribedBroker) -> dict[str, Any]:
    return {
        "id": broker.endpoint.id,
        "address": f"{broker.endpoint.host}:{broker.endpoint.port}",
        "rack": broker.endpoint.rack,
        "epoch": broker.epoch,
        "leaders": broker.leaders,
        "replicas": broker.replicas,
        "state": "shutting down" if broker.is_shutting_down else "live",
    }
