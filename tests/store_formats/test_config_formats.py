"""The znodes below `/config`, byte for byte as Kafka writes them."""

from __future__ import annotations

import pytest

from transport.store import formats, paths
from transport.store.formats import UndecodableZnode

PATH = paths.topic_config("orders")


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({}, b'{"version":1,"config":{}}'),
        ({"min.insync.replicas": "2"}, b'{"version":1,"config":{"min.insync.replicas":"2"}}'),
        (
            {"unclean.leader.election.enable": "true", "leader.replication.throttled.replicas": "0:1,1:2"},
            (
                b'{"version":1,"config":{"unclean.leader.election.enable":"true",'
                b'"leader.replication.throttled.replicas":"0:1,1:2"}}'
            ),
        ),
    ],
)
def test_settings(settings: dict[str, str], data: bytes) -> None:
    assert formats.encode_config(settings) == data
    assert formats.decode_config(PATH, data) == settings


def test_settings_have_kafkas_paths() -> None:
    assert PATH == "/config/topics/orders"
    assert paths.broker_config(3) == "/config/brokers/3"
    assert paths.broker_config(None) == "/config/brokers/<default>"


@pytest.mark.parametrize("data", [b"", b'{"version":1,"config":{}}', b'{"config":{},"later":[1]}'])
def test_a_znode_without_settings(data: bytes) -> None:
    assert formats.decode_config(PATH, data) == {}


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "config must be an object"),
        (b'{"config":[]}', "config must be an object"),
        (b'{"config":{"min.insync.replicas":2}}', "min.insync.replicas must be a string"),
    ],
)
def test_settings_that_cannot_be_decoded_are_named(data: bytes, hint: str) -> None:
    with pytest.raises(UndecodableZnode, match=hint) as raised:
        formats.decode_config(PATH, data)
    assert raised.value.path == PATH


@pytest.mark.parametrize("entity", ["topics/orders", "brokers/3", "brokers/<default>"])
def test_notifications_of_changes(entity: str) -> None:
    data = b'{"version":2,"entity_path":"%s"}' % entity.encode()
    assert formats.encode_config_change(entity) == data
    assert formats.decode_config_change("/config/changes/config_change_0000000000", data) == entity


def test_a_notification_that_names_nothing() -> None:
    with pytest.raises(UndecodableZnode, match="entity_path must be a string"):
        formats.decode_config_change(paths.CONFIG_CHANGES, b'{"version":1}')
