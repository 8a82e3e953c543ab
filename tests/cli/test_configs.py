"""`klamm config`: the notation of settings on the command line."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from controller.admin.client import AdminClient
from klamm.cli.configs import config, parse_settings
from klamm.cli.connect import Cluster
from transport.messages import MetadataResponse
from transport.network import TcpNetwork


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (None, []),
        ("a=1", [("a", "1")]),
        ("a=1,b=[0:1,0:2], c=", [("a", "1"), ("b", "0:1,0:2"), ("c", "")]),
        ("a=[]", [("a", "")]),
        ("a=b=c", [("a", "b=c")]),
    ],
)
def test_settings_are_written_as_for_kafkas_tools(text: str | None, settings: list[tuple[str, str]]) -> None:
    assert parse_settings(text) == settings


TOPIC = ("--entity-type", "topics", "--entity-name", "orders")
BROKERS = ("--entity-type", "brokers")


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (("alter", *TOPIC), "--add-config or --delete-config"),
        (
            ("alter", *TOPIC, "--add-config", "min.insync.replicas"),
            "'min.insync.replicas' is not of the form NAME=VALUE",
        ),
        (("alter", *BROKERS, "--add-config", "a=1"), "--entity-default"),
        (("describe", *BROKERS, "--entity-name", "1", "--entity-default"), "--entity-default"),
        (("describe", "--entity-type", "topics"), "--entity-name"),
        (("describe", "--entity-type", "topic", "--entity-name", "orders"), "'topics', 'brokers'"),
    ],
)
def test_what_is_left_out_or_misspelt_is_told_with_the_cure(arguments: tuple[str, ...], cure: str) -> None:
    done = CliRunner().invoke(config, arguments)
    assert done.exit_code == 2
    assert cure in done.output


async def test_metadata_that_are_known_are_not_read_again() -> None:
    network = TcpNetwork()
    nowhere = AdminClient(network, (("127.0.0.1", 1),), None, 0)
    cluster = Cluster("127.0.0.1:1", None, 0, network)
    async with cluster.settings_of(nowhere, MetadataResponse(None, 1, (), ())) as settings:
        assert settings is nowhere
