"""The settings of topics in effect on a broker, refreshed while it runs."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import frozen

from actors import Backoff
from broker.config import BrokerConfig
from broker.wakeup import Wakeup
from transport.dynamic_configs import (
    MAX_MESSAGE_BYTES,
    MESSAGE_MAX_BYTES,
    MIN_INSYNC_REPLICAS,
    TOPIC_SETTINGS,
    Layer,
    as_topic_layer,
    in_effect,
)
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.log import get_logger
from transport.settings import Setting, Value
from transport.store import formats, paths
from transport.store.protocol import MetadataStore, SessionChanged, StoreError, StoreEvent, Znode

_log = get_logger(__name__)


@frozen
class TopicConfig:
    """The settings of a topic that a broker uses."""

    min_insync_replicas: int
    max_message_bytes: int


@frozen
class _Known:
    topic_id: str
    generation: int
    config: TopicConfig


class TopicConfigs:
    """Reads a topic's settings when they are first asked for, and again after any change below `/config`.

    A topic's own count before those of this broker, those before the default of all brokers, and those before what the
    broker was started with. A topic is created with its settings, so that whoever finds the topic finds them, too.
    """

    def __init__(self, store: MetadataStore, config: BrokerConfig, host: Host) -> None:
        self._store = store
        self._broker_id = config.broker_id
        self._static = Layer(
            "STATIC_BROKER_CONFIG",
            {MIN_INSYNC_REPLICAS: str(config.min_insync_replicas), MESSAGE_MAX_BYTES: str(config.message_max_bytes)},
        )
        self._host = host
        self._known: dict[str, _Known] = {}
        self._generation = 0
        self._news = Wakeup()
        self.changed = Wakeup()
        """Set whenever settings of topics or brokers may have changed, for one reader of other settings."""

    async def of_topic(self, topic: str, topic_id: str) -> TopicConfig:
        """Return the settings in effect.

        While the store is unavailable, the last known settings stay in effect. Raises ApiError(NOT_ENOUGH_REPLICAS) if
        there are none.
        """
        known = self._known.get(topic)
        # The settings of a deleted topic of the same name.
        if known is not None and known.topic_id != topic_id:
            known = None
        if known is not None and known.generation == self._generation:
            return known.config
        generation = self._generation
        try:
            config = await self._read(topic)
        except StoreError as error:
            if known is None:
                text = f"the settings of topic {topic} cannot be read: {error}"
                raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, text) from error
            return known.config
        self._known[topic] = _Known(topic_id, generation, config)
        return config

    def forget(self, topic: str) -> None:
        """Forget a topic that this broker no longer hosts; it is read again when needed."""
        self._known.pop(topic, None)

    async def keep_fresh(self) -> None:
        """Watch for changes until cancelled."""
        unsubscribe = self._store.subscribe(self._on_store_event)
        backoff = Backoff(jitter=self._host.rng.random)
        try:
            while True:
                try:
                    await self._store.children([paths.CONFIG_CHANGES], watch=True)
                except StoreError:
                    with trio.move_on_after(backoff.next()):
                        await self._news.wait()
                    continue
                backoff.reset()
                # Not earlier: settings read before the watch was armed may have missed a change.
                self._generation += 1
                self.changed.set()
                await self._news.wait()
        finally:
            unsubscribe()

    def _on_store_event(self, event: StoreEvent) -> None:
        if isinstance(event, SessionChanged) or event.path == paths.CONFIG_CHANGES:
            self._news.set()

    async def _read(self, topic: str) -> TopicConfig:
        wanted = [paths.topic_config(topic), paths.broker_config(self._broker_id), paths.broker_config(None)]
        own, *brokers = await read_layers(self._store, wanted)
        layers = [own, *map(as_topic_layer, (*brokers, self._static))]
        names = (MIN_INSYNC_REPLICAS, MAX_MESSAGE_BYTES)
        values = [int(value_in_effect(TOPIC_SETTINGS[name], layers, topic=topic)) for name in names]
        return TopicConfig(*values)


async def read_layers(store: MetadataStore, wanted: Sequence[str]) -> list[Layer]:
    """Read the settings in znodes; none for a znode that is missing or cannot be decoded. Raises StoreError."""
    found = await store.read(wanted) if wanted else []
    return [_decode_layer(path, znode) for path, znode in zip(wanted, found, strict=True)]


def value_in_effect(setting: Setting, layers: Sequence[Layer], **subject: str) -> Value:
    """Return a setting's value in effect, and log invalid values; `subject` names the owner in the log."""
    found = in_effect(setting, layers)
    for fault in found.faults:
        _log.error("ignoring an invalid setting: alter it with `klamm config alter`", **subject, fault=fault)
    return found.value


def _decode_layer(path: str, znode: Znode | None) -> Layer:
    """Return the settings in a znode; none if it is missing or cannot be decoded."""
    if znode is None:
        return Layer(path, {})
    try:
        return Layer(path, formats.decode_config(path, znode.data))
    except formats.UndecodableZnode as fault:
        _log.error("ignoring settings that cannot be decoded: delete or repair them", fault=str(fault))
        return Layer(path, {})
