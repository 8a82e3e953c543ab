"""Draws changes and checks of every dynamic setting, valid, invalid and unknown, through the api and by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.requests import AlterBroker, AlterTopic, ValidateBrokerSettings, ValidateSettings
from simulator.actions.scene import Action
from simulator.actions.znodes import WriteSettings
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.happenings import Happening
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport import dynamic_configs as configs
from transport.settings import Kind, Setting
from transport.store import paths

_CHANCE_AT_STEP: Final = 0.3
_CHANCE_OF_INVALID: Final = 0.3
_CHANCE_BY_HAND: Final = 0.4

_TOPIC: Final = tuple({**configs.TOPIC_SETTINGS, **configs.MOVE_SETTINGS}.values())
_BROKER: Final = tuple({**configs.BROKER_SETTINGS, **configs.MOVE_SETTINGS}.values())
_UNKNOWN: Final = Setting("retention.ms", Kind.LONG, 1, "A setting of Kafka's that we do not have.")

_SLOWEST: Final = 100_000
"""The lowest rate of a throttle in bytes per second, so that moves end in time."""

_INVALID: Final = ("", " ", "-1", "1.5", "x", "TRUE?", "9" * 30, "0:1,", "1:2:3", "\u0663")


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few changes for the time until `seconds`, some of them at a step."""
    changer = _Changer(rng, settings, sorted({name.rpartition("-")[0] for name in partitions}))
    happenings = []
    for _ in range(rng.randint(2, 6)):
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        happenings.append(Happening(rng.uniform(0.2, seconds - 0.5), step, changer.change()))
    return happenings


def draw_checks(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw requests that only ask whether settings could be changed, for the time until `seconds`."""
    changer = _Changer(rng, settings, sorted({name.rpartition("-")[0] for name in partitions}))
    happenings = []
    for _ in range(rng.randint(2, 6)):
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        happenings.append(Happening(rng.uniform(0.2, seconds - 0.5), step, changer.check()))
    return happenings


@define
class _Changer:
    rng: random.Random
    settings: Settings
    topics: list[str]

    def change(self) -> Action:
        """Return a change of some settings of a topic, a broker, or the default of all brokers."""
        whose, topic, broker, values = self._draw()
        if self.rng.random() < _CHANCE_BY_HAND:
            entity = {"topic": f"topics/{topic}", "broker": f"brokers/{broker}", "default": f"brokers/{paths.DEFAULT}"}
            return WriteSettings({entity[whose]: {name: value for name, value in values.items() if value is not None}})
        if whose == "broker":
            return AlterBroker({broker: values})
        return AlterTopic({topic if whose == "topic" else "": values})

    def check(self) -> Action:
        """Return the question whether such a change could be made."""
        whose, topic, broker, values = self._draw()
        if whose == "broker":
            return ValidateBrokerSettings({broker: values})
        return ValidateSettings({topic if whose == "topic" else "": values})

    def _draw(self) -> tuple[str, str, int, dict[str, str | None]]:
        """Draw which settings change: those of the topic, of the broker, or the default; and their values."""
        topic, broker = self.rng.choice(self.topics), self.rng.choice(self.settings.broker_ids)
        whose = self.rng.choice(("topic", "topic", "broker", "default"))
        return whose, topic, broker, self._values(_TOPIC if whose == "topic" else _BROKER)

    def _values(self, settings: tuple[Setting, ...]) -> dict[str, str | None]:
        some = self.rng.sample((*settings, _UNKNOWN), self.rng.choice((1, 1, 2, 3)))
        return {setting.name: self._value(setting) for setting in some}

    def _value(self, setting: Setting) -> str | None:
        if self.rng.random() < _CHANCE_OF_INVALID:
            return self.rng.choice(_INVALID)
        if self.rng.random() < 0.2:  # noqa: PLR2004  sometimes inherited again
            return None
        match setting.kind:
            case Kind.BOOLEAN:
                return self.rng.choice(("true", "false", " True ", "FALSE"))
            case Kind.LONG:
                return str(self.rng.choice((_SLOWEST, 10**9, setting.at_most)))
            case Kind.REPLICAS:
                return self.rng.choice(("*", "", "0:1", f"0:{self.settings.broker_ids[-1]},1:1", "99:99"))
            case _:
                return str(self.rng.choice((1, 2, 3, 10_000, setting.at_most)))
