"""Check that controllers alter settings exactly as administrators ask, and notify others of it in the same commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from attrs import define, field

from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import is_controller
from simulator.safety.rollouts import are_throttles
from simulator.store.durable import Durable
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from transport.store import formats, paths
from transport.store.protocol import Check, Create, Delete, Op

_REMEMBERED: Final = 64
"""Number of requests remembered for each topic or broker."""

_BELOW_TOPICS: Final = paths.topic_config("")
_DEFAULT: Final = paths.broker_config(None)
_BELOW_BROKERS: Final = f"{paths.BROKER_CONFIGS}/"
_NOTIFICATIONS: Final = f"{paths.CONFIG_CHANGES}/"

K = TypeVar("K")
V = TypeVar("V")

_Settings = Mapping[str, str]


@define
class Alterations:
    """The settings in the store, and how administrators have asked to alter them."""

    exempt: Exemptions
    number: int = field(default=0, init=False)
    """The number of commits that altered settings."""

    _settings: dict[str, _Settings] = field(factory=dict, init=False)
    _asked: dict[str, dict[tuple[AlterableConfig, ...], int]] = field(factory=dict, init=False)
    """Each alteration that was asked for, and the number of the last commit that carried it out, 0 for none."""

    _checked: dict[str, dict[tuple[AlterableConfig, ...], None]] = field(factory=dict, init=False)
    """The alterations of requests that only ask whether they are possible: these explain no commit."""

    _created: dict[str, dict[tuple[tuple[str, str], ...], None]] = field(factory=dict, init=False)
    """The settings with which topics were to be created."""

    def asked(self, request: IncrementalAlterConfigsRequest | CreateTopicsRequest) -> None:
        """Record a request that a controller takes from the network; one that only checks asks for nothing."""
        if isinstance(request, CreateTopicsRequest):
            for topic in () if request.validate_only else request.topics:
                _remember(self._created.setdefault(paths.topic_config(topic.name), {}), topic.configs, None)
            return
        for item in request.resources:
            path = _path(item.resource)
            if request.validate_only:
                _remember(self._checked.setdefault(path, {}), item.configs, None)
            else:
                _remember(self._asked.setdefault(path, {}), item.configs, 0)

    def committed(self, host: str, ops: Sequence[Op], durable: Durable) -> Iterator[str]:
        """Check the settings that a commit writes, right after it took effect."""
        below = [op for op in ops if op.path.startswith((_BELOW_TOPICS, _BELOW_BROKERS))]
        altered = [op for op in below if not isinstance(op, Check)]
        self.number += bool(altered)
        for op in altered:
            before = self._settings.pop(op.path, {})
            if isinstance(op, Delete):
                continue
            after = self._read(op.path, durable)
            if after is None or self._is_exempt(op.path) or not is_controller(host):
                continue
            name = op.path.removeprefix(_BELOW_TOPICS)
            if any(isinstance(other, Create) and other.path == paths.topic(name) for other in ops):
                yield from self._at_creation(host, op.path, after)
            else:
                yield from self._alteration(host, op.path, before, after)
                yield from _notification(host, op.path, ops)

    def granted(self, since: int, item: AlterConfigsResource) -> Iterator[str]:
        """Check the answer that settings are altered, to a request made after that number of alterations."""
        path = _path(item.resource)
        if not self._is_exempt(path) and self._asked.get(path, {}).get(item.configs, 0) <= since:
            yield f"{path} was reported to be altered, but was not: {_text(item.configs)}"

    def _read(self, path: str, durable: Durable) -> _Settings | None:
        znode = durable.tree.read(path)
        with suppress(formats.UndecodableZnode):
            if znode is not None:
                self._settings[path] = formats.decode_config(path, znode.data)
        return self._settings.get(path)

    def _at_creation(self, host: str, path: str, after: _Settings) -> Iterator[str]:
        if all(dict(configs) != after for configs in self._created.get(path, ())):
            yield f"{host} created {path} with {after}, which nobody asked for"

    def _alteration(self, host: str, path: str, before: _Settings, after: _Settings) -> Iterator[str]:
        asked = self._asked.get(path, {})
        carried_out = [configs for configs in asked if _explains(configs, before, after)]
        asked.update(dict.fromkeys(carried_out, self.number))
        if not carried_out and not are_throttles(before, after):
            is_checked = any(_explains(configs, before, after) for configs in self._checked.get(path, ()))
            why = "although the request was to check it only" if is_checked else "which nobody asked for"
            yield f"{host} altered {path} from {before} to {after}, {why}"

    def _is_exempt(self, path: str) -> bool:
        return self.exempt.has(path) or self.exempt.has_topic(path.removeprefix(_BELOW_TOPICS))


def _remember(asked: dict[K, V], key: K, value: V) -> None:
    """Enter a request as the latest."""
    asked[key] = asked.pop(key, value)
    if len(asked) > _REMEMBERED:
        del asked[next(iter(asked))]


def _explains(configs: Sequence[AlterableConfig], before: _Settings, after: _Settings) -> bool:
    """Return whether these alterations, and nothing else, make `after` of `before`; lists may be anything."""
    expected, found = dict(before), dict(after)
    for config in configs:
        expected.pop(config.name, None)
        value = found.pop(config.name, None)
        is_list = config.operation in {ConfigOperation.APPEND, ConfigOperation.SUBTRACT}
        wanted = config.value.strip() if config.operation is ConfigOperation.SET else None
        if value != wanted and not is_list:
            return False
    return expected == found


def _notification(host: str, path: str, ops: Sequence[Op]) -> Iterator[str]:
    entity = path.removeprefix("/config/")
    told = [op for op in ops if isinstance(op, Create) and op.path.startswith(_NOTIFICATIONS)]
    if not any(formats.decode_config_change(op.path, op.data) == entity for op in told):
        yield f"{host} altered {path} and notified nobody"


def _path(resource: ConfigResource) -> str:
    if resource.type is ConfigResourceType.TOPIC:
        return paths.topic_config(resource.name)
    return f"{_BELOW_BROKERS}{resource.name}" if resource.name else _DEFAULT


def _text(configs: Sequence[AlterableConfig]) -> str:
    return ", ".join(f"{config.operation.name} {config.name}={config.value}" for config in configs)
