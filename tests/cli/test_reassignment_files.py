"""Reassignment files: mistakes are rejected with their place, and the files of Kafka's tool are read."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import click
import pytest
from hypothesis import given, strategies as st

from klamm.cli.reassignment import files
from klamm.cli.reassignment.files import FileFault, decode_document, encode_targets, read_document
from spark_bridge.inputs.json_words import CUT_OFF
from transport.metadata import TopicPartition

T0 = '{"topic":"t","partition":0,"replicas":[1]}'


def plan(*entries: str) -> str:
    return f'{{"version":1,"partitions":[{",".join(entries)}]}}'


@pytest.mark.requirement("A1", "A3")
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file is empty"),
        (" \n\t", "the file is empty"),
        ('{"partitions":\n  [1,]}', "not JSON: line 2 column 6: "),
        (plan(T0)[:-1], f"not JSON: line 1 column 71: {CUT_OFF}"),
        (f"{plan(T0)[:36]}\n", f"not JSON: line 2 column 1: {CUT_OFF}"),
        ('{"partitions":\n[{"topic":"ord', f"not JSON: line 2 column 11: {CUT_OFF}"),
        (f"{plan(T0)} x", "not JSON: line 1 column 73: Extra data"),
        ("[" * 100_000, "nested too deeply"),
        (f'{{"partitions":{"1" * 5000}}}', "not JSON: Exceeds the limit"),
        ("[]", "not a JSON object"),
        ("{}", 'there must be a list "partitions"'),
        ('{"partitions":{}}', 'there must be a list "partitions"'),
        (plan(), "the list of partitions is empty"),
        ('{"version":2,"partitions":[]}', "version must be 1, is 2"),
        ('{"version":1,"version":1,"partitions":[]}', 'duplicate key "version" in an object'),
        (plan('{"topic":"t","partition":7,"replicas":[1],"replicas":[2]}'),
         'duplicate key "replicas" in an object, the one with {\'topic\': \'t\', \'partition\': 7}'),
        (plan(T0, "7"), "partitions[1] must be an object with a topic"),
        (plan(T0, '{"partition":0,"replicas":[1]}'), "partitions[1] must be an object with a topic"),
        (plan('{"topic":"t","partition":"0","replicas":[1]}'), "partitions[0].partition must be an integer, is '0'"),
        (plan('{"topic":"t","partition":true,"replicas":[1]}'), "partitions[0].partition must be an integer, is True"),
        (plan(r'{"topic":"\ud800","partition":0,"replicas":[1]}'),
         r"partitions[0].topic is not the name of a topic: '\ud800'"),
        (plan('{"topic":"t","partition":-1,"replicas":[1]}'), "partitions[0].partition must not be negative, is -1"),
        (plan(T0, '{"topic":"t","partition":1}'), "partitions[1].replicas must be a list of integers, is None"),
        (plan('{"topic":"t","partition":0,"replicas":[1.0]}'), "partitions[0].replicas must be a list of integers"),
        (plan(T0, T0), "partitions[1]: duplicate partition t-0"),
        (plan('{"topic":"t","partition":0,"replicas":[]}'), "partitions[0].replicas: the list of replicas is empty"),
        (plan('{"topic":"t","partition":0,"replicas":[2,1,2]}'),
         "partitions[0].replicas: the list of replicas [2, 1, 2] names a broker twice"),
        (plan('{"topic":"t","partition":0,"replicas":[1,-2]}'),
         "partitions[0].replicas: the list of replicas [1, -2] has a negative broker id"),
        (plan('{"topic":"t","partition":0,"replicas":[1],"log_dirs":[]}'),
         "partitions[0].log_dirs must be a list of 1"),
        (plan('{"topic":"t","partition":0,"replicas":[1],"log_dirs":["disk1"]}'),
         "partitions[0].log_dirs must have the absolute path of a log directory or \"any\", not 'disk1'"),
    ],
    ids=range(30),
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_the_place(text: str, fault: str) -> None:
    with pytest.raises(FileFault) as refused:
        decode_document(text.encode())
    assert str(refused.value).startswith(fault)


def test_a_fault_is_told_in_one_line_that_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "move.json"
    file.write_bytes(b'{"partitions":"\xff"}')
    with pytest.raises(click.ClickException) as refused:
        read_document(file)
    assert refused.value.message == f"{file}: not UTF-8: byte 15"
    file.write_text(plan(f'{{"topic":"t","partition":0,"replicas":{["1"] * 10_000}}}'.replace("'", '"')))
    with pytest.raises(click.ClickException) as refused:
        read_document(file)
    assert len(refused.value.message) < 300
    with pytest.raises(click.ClickException) as refused:
        read_document(tmp_path / "nothing.json")
    assert refused.value.message == f"{tmp_path / 'nothing.json'}: No such file or directory"


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(files.LIMIT.bytes * 1000)
    with pytest.raises(click.ClickException) as refused:
        read_document(file)
    assert refused.value.message == f"{file}: larger than 64 MB: split it"


@pytest.mark.requirement("A1")
def test_what_kafka_writes_is_read_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    entries = [
        {"topic": "t", "partition": p, "replicas": [p % 7, 7], "log_dirs": ["any", "any"], "more": {}}
        for p in reversed(range(10_000))
    ]
    file.write_text(json.dumps({"partitions": entries, "comment": "ours"}))
    targets = read_document(file).targets
    assert list(targets) == [TopicPartition("t", p) for p in reversed(range(10_000))]
    assert targets[TopicPartition("t", 9_999)] == (3, 7)


REPLICAS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True).map(tuple)
PARTITIONS = st.tuples(st.text().filter(str.isprintable), st.integers(0, 2**31 - 1)).map(
    lambda pair: TopicPartition(*pair)
)


@given(st.dictionaries(PARTITIONS, REPLICAS, min_size=1))
def test_what_is_written_for_the_way_back_is_read_back(targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    assert decode_document(encode_targets(targets).encode()).targets == targets


def test_directories_are_named_for_some_replicas_or_none() -> None:
    entry = '{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","/disk2"]}'
    document = decode_document(plan(entry).encode())
    tp = TopicPartition("t", 0)
    assert document.log_dirs == {(tp, 2): "/disk2"}
    written = encode_targets(document.targets, document.log_dirs)
    assert decode_document(written.encode()) == document


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(FileFault):
        decode_document(data)
