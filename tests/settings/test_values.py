"""Settings as text and as values: the valid ones, and the messages about others."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from transport.dynamic_configs import BROKER_SETTINGS, TOPIC_SETTINGS, Layer, as_topic_layer, in_effect
from transport.settings import LONG_MAX, InvalidSetting, Kind, Setting, Value, did_you_mean, find, render

FLAG = Setting("flag", Kind.BOOLEAN, default=False, doc="")
COUNT = Setting("count", Kind.INT, 1, "", at_least=1, at_most=9)
RATE = Setting("rate", Kind.LONG, LONG_MAX, "", at_most=LONG_MAX)
RATIO = Setting("ratio", Kind.DOUBLE, 0.5, "", at_most=1)
NAME = Setting("name", Kind.STRING, None, "")
REPLICAS = Setting("replicas", Kind.REPLICAS, "", "")


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (FLAG, "true", True),
        (FLAG, " FALSE ", False),
        (COUNT, "1", 1),
        (COUNT, " 9 ", 9),
        (RATE, str(LONG_MAX), LONG_MAX),
        (RATIO, "0.25", 0.25),
        (RATIO, "1", 1.0),
        (NAME, "zk:2181", "zk:2181"),
        (REPLICAS, "*", "*"),
        (REPLICAS, "", ""),
        (REPLICAS, "0:1,1:2", "0:1,1:2"),
    ],
)
def test_a_text_stands_for_a_value(setting: Setting, text: str, value: Value) -> None:
    assert setting.parse(text) == value


@pytest.mark.parametrize(
    ("setting", "texts", "valid"),
    [
        (FLAG, ["", "1", "yes", "truee"], "flag must be true or false, is "),
        (COUNT, ["", "0", "10", "1.0", "1_0", "\N{SUPERSCRIPT TWO}", "one", "9" * 5000], "an integer from 1 to 9, is "),
        (RATE, ["-1", str(LONG_MAX + 1)], "a long integer from 0, is "),
        (RATIO, ["", "nan", "inf", "1.1", "-0.1", "1e0"], "a number from 0 to 1, is "),
        (NAME, ["", " "], "a string, is ''"),
        (REPLICAS, ["0", "0:", "0:1,", "0-1", "**"], "PARTITION:BROKER"),
    ],
)
def test_a_text_that_is_no_value_is_refused_with_what_is_valid(setting: Setting, texts: list[str], valid: str) -> None:
    for text in texts:
        with pytest.raises(InvalidSetting) as refused:
            setting.parse(text)
        assert valid in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [(FLAG, 1), (FLAG, "true"), (COUNT, True), (COUNT, "1"), (COUNT, 1.0), (RATIO, False), (NAME, 1), (REPLICAS, None)],
)
def test_a_value_of_another_type_is_refused(setting: Setting, value: object) -> None:
    with pytest.raises(InvalidSetting, match="must be"):
        setting.check(value)


@given(st.sampled_from([FLAG, COUNT, RATE]), st.booleans() | st.integers(-1, LONG_MAX + 1))
def test_what_is_written_is_read_back(setting: Setting, value: Value) -> None:
    try:
        valid = setting.check(value)
    except InvalidSetting:
        return
    assert setting.parse(render(valid)) == valid


def test_the_nearest_name_is_told() -> None:
    with pytest.raises(InvalidSetting, match=r"no setting min\.insync\.replica: did you mean min\.insync\.replicas\?"):
        find(TOPIC_SETTINGS, "min.insync.replica")
    assert did_you_mean("qqq", ["b", "a"]) == ": valid are a, b"


def test_the_highest_layer_counts_and_what_is_not_valid_is_set_aside() -> None:
    setting = TOPIC_SETTINGS["min.insync.replicas"]
    high, low = Layer("high", {"min.insync.replicas": "x"}), Layer("low", {"min.insync.replicas": "2"})
    found = in_effect(setting, [Layer("none", {}), high, low])
    assert (found.value, found.source, found.faults) == (
        2,
        "low",
        ("min.insync.replicas must be an integer from 1, is 'x'",),
    )
    assert in_effect(setting, []).source == "DEFAULT_CONFIG"


def test_topics_inherit_under_their_own_names_what_brokers_have() -> None:
    layer = Layer("default", {"message.max.bytes": "7", "leader.replication.throttled.rate": "1"})
    assert as_topic_layer(layer) == Layer("default", {"max.message.bytes": "7"})


@pytest.mark.parametrize("setting", [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()], ids=lambda s: s.name)
def test_every_default_is_valid(setting: Setting) -> None:
    assert setting.default is not None
    assert setting.parse(render(setting.default)) == setting.default
    assert setting.doc.endswith(".")
