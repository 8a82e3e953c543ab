"""The options that say which cluster, and how commands reach it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import click
from attrs import frozen

from controller.admin_client import AdminClient, open_admin
from controller.cli.running import parse_addresses

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"


@frozen
class Cluster:
    """Which cluster a command is about."""

    bootstrap_server: str
    zookeeper: str | None
    timeout: float

    def open_admin(self) -> AbstractAsyncContextManager[AdminClient]:
        """Open an admin client of the cluster."""
        return open_admin(
            bootstrap=parse_addresses(self.bootstrap_server), zookeeper_connect=self.zookeeper, timeout=self.timeout
        )


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `Cluster`, passed to it as `cluster`."""

    @click.option("--bootstrap-server", default=DEFAULT_BOOTSTRAP, show_default=True, metavar="HOST:PORT,...",
                  help="Brokers or controllers to ask first.")
    @click.option("--zookeeper", metavar="HOST:PORT/CHROOT", help="Find the controller through ZooKeeper instead.")
    @click.option("--timeout", default=30.0, show_default=True, metavar="SECONDS", help="How long to try.")
    def with_cluster(bootstrap_server: str, zookeeper: str | None, timeout: float, **options: Any) -> Any:
        parse_addresses(bootstrap_server)
        return command(cluster=Cluster(bootstrap_server, zookeeper, timeout), **options)

    with_cluster.__doc__ = command.__doc__
    with_cluster.__name__ = command.__name__
    with_cluster.__click_params__ = [*with_cluster.__click_params__, *getattr(command, "__click_params__", [])]  # type: ignore[attr-defined]
    return with_cluster


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `-o table|json`."""
    return click.option(
        "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
    )(command)
