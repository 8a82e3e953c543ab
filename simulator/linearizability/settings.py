"""The settings of a topic, or of all brokers, as administrators see them: a sequential model, and its operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen
from msgspec.structs import replace

from simulator.linearizability.checker import Operation
from simulator.linearizability.commits import Committed, by_commit
from transport.dynamic_configs import BROKER_SETTINGS, MOVE_SETTINGS, TOPIC_SETTINGS
from transport.errors import ErrorCode
from transport.settings import InvalidSetting, Setting, render


class ModelSettings(Committed, frozen=True, cache_hash=True):
    """The settings that are set, sorted by name."""

    values: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{dict(self.values)}"


NONE_SET = ModelSettings()


def of(values: Mapping[str, str]) -> ModelSettings:
    """Return the model of settings, with their values in the form in which they are described."""
    return ModelSettings(tuple(sorted((name, _described(name, value)) for name, value in values.items())))


def _described(name: str, value: str) -> str:
    setting = TOPIC_SETTINGS.get(name)
    try:
        return value.strip() if setting is None else render(setting.parse(value))
    except InvalidSetting:
        return value.strip()


def drifts(state: ModelSettings) -> Iterable[ModelSettings]:
    """Return the state: settings change by requests only, or together with their topic."""
    return [state]


def are_valid(name: str, values: Mapping[str, str | None]) -> bool | None:
    """Return whether a topic, or with the name "" all brokers, may be given these values; None if unknown.

    A setting that does not exist may be set nevertheless, by others, and is then deleted like any other.
    """
    table = {**(TOPIC_SETTINGS if name else BROKER_SETTINGS), **MOVE_SETTINGS}
    judged = [_is_valid(table.get(key), value) for key, value in values.items()]
    return False if False in judged else None if None in judged else True


def _is_valid(setting: Setting | None, value: str | None) -> bool | None:
    if setting is None:
        return None if value is None else False
    try:
        if value is not None:
            setting.parse(value)
    except InvalidSetting:
        return False
    return True


@frozen
class Alter(Operation[ModelSettings]):
    """New values, None for those that are inherited again, and the answer; an unknown answer counts as success.

    With `validate_only` the same answers are right, and nothing changes.
    """

    values: tuple[tuple[str, str | None], ...]
    error: ErrorCode = ErrorCode.NONE
    is_valid: bool | None = None
    """Whether the values may be set, which the answer has to agree with; None if that depends on what is set."""

    validate_only: bool = False

    def after(self, state: ModelSettings) -> Iterable[ModelSettings]:
        """Return the new settings, or the same if the request is refused; none if that is for no reason."""
        if self._is_misjudged():
            return []
        if self.error is not ErrorCode.NONE or self.validate_only:
            return [state]
        altered = {**dict(state.values), **dict(self.values)}
        left = {name: value for name, value in altered.items() if value is not None}
        return by_commit(state, [replace(state, values=of(left).values)])

    def _is_misjudged(self) -> bool:
        if self.is_valid is None:
            return False
        return self.error is (ErrorCode.INVALID_CONFIG if self.is_valid else ErrorCode.NONE)

    def __str__(self) -> str:
        return f"{'check of ' if self.validate_only else ''}{dict(self.values)} answered {self.error.name}"


@frozen
class Describe(Operation[ModelSettings]):
    """A description of the settings that are set."""

    settings: ModelSettings

    def after(self, state: ModelSettings) -> Iterable[ModelSettings]:
        """Return the settings if they are as described."""
        return [state] if state.values == self.settings.values else []

    def __str__(self) -> str:
        return f"description as {self.settings}"


@frozen
class Stored(Operation[ModelSettings]):
    """The settings in the store right after a commit of a controller, or right before if it `checks` only."""

    settings: ModelSettings
    checks: bool = False

    def after(self, state: ModelSettings) -> Iterable[ModelSettings]:
        """Return the settings if the store has them."""
        return [replace(state, changes=int(self.checks))] if state.values == self.settings.values else []

    def __str__(self) -> str:
        return f"the store {'still has' if self.checks else 'has'} {self.settings}"


@frozen
class Reset(Operation[ModelSettings]):
    """A creation or deletion of the topic, which leaves it these settings."""

    settings: ModelSettings

    def after(self, state: ModelSettings) -> Iterable[ModelSettings]:
        """Return the settings of the new topic, or of none."""
        return [replace(self.settings, changes=state.changes)]

    def __str__(self) -> str:
        return f"a topic comes or goes with {self.settings}"
