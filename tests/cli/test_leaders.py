"""`klamm leader elect`: the notation of partitions on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from klamm.cli.leaders import Wanted, leader, read_wanted
from transport.metadata import TopicPartition

PREFERRED = ("elect", "--election-type", "preferred")
ONE = ("--topic", "orders", "--partition", "0")


def entries(*items: str) -> str:
    """Return an election file of these entries."""
    return f'{{"partitions":[{",".join(items)}]}}'


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ((), "give either --topic and --partition, --path-to-json-file, or --all-topic-partitions"),
        (("--topic", "orders"), "--topic and --partition go together: give both"),
        (("--partition", "0"), "--topic and --partition go together: give both"),
        (("--topic", "orders", "--partition", "0", "--all-topic-partitions"), "give either --topic and --partition"),
        (("--topic", "orders", "--partition", "-1"), "-1 is not in the range x>=0"),
        (("--all-topic-partitions", "--replicas", "2,1"), "--replicas is the order of one partition: give it with"),
        (
            (*ONE, "--replicas", "2,b"),
            "--replicas 2,b: name broker ids up to 2147483647, the leader",
        ),
        ((*ONE, "--replicas", ""), "name broker ids up to 2147483647, the leader first"),
        ((*ONE, "--replicas", "2,1", "--election-type", "unclean"), "need --election-type preferred"),
    ],
)
def test_partitions_that_are_not_named_well_are_refused_with_the_cure(arguments: tuple[str, ...], cure: str) -> None:
    done = CliRunner().invoke(leader, [*PREFERRED, *arguments])
    assert done.exit_code == 2
    assert cure in done.output


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ('{"partitions":[]}', "the list of partitions is empty"),
        ('{"partitions":[{"topic":"orders"}]}', "partitions[0].partition must be"),
        (
            entries('{"topic":"orders","partition":0}', '{"topic":"orders","partition":0}'),
            "partitions[1]: duplicate partition orders-0",
        ),
        (
            entries('{"topic":"orders","partition":0,"replicas":3}'),
            "partitions[0].replicas must be a list of broker ids",
        ),
        (entries('{"topic":"orders","partition":0,"replicas":[]}'), "partitions[0].replicas must be a list of broker"),
        (entries('{"topic":"orders","partition":0,"replicas":[1,true]}'), "partitions[0].replicas must be a list of"),
        (entries('{"topic":"orders","partition":0,"replicas":[1,-2]}'), "partitions[0].replicas must be a list of"),
        (entries('{"topic":"orders","partition":0,"replicas":[1,2,1]}'), "replicas [1, 2, 1] names a broker twice"),
    ],
)
def test_a_file_that_names_no_partitions_is_refused_with_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "election.json"
    file.write_text(text)
    done = CliRunner().invoke(leader, [*PREFERRED, "--path-to-json-file", str(file)])
    assert done.exit_code == 1
    assert fault in done.output


def test_a_file_may_name_orders_for_some_and_leave_others_to_a_plain_election(tmp_path: Path) -> None:
    file = tmp_path / "election.json"
    file.write_text(
        entries(
            '{"topic":"orders","partition":1}',
            '{"topic":"orders","partition":0,"replicas":[3,1,2],"log_dirs":["any","any","any"]}',
            '{"topic":"orders","partition":2,"replicas":null}',
        )
    )
    orders = {TopicPartition("orders", 0): (3, 1, 2)}
    assert read_wanted(file) == Wanted((TopicPartition("orders", 1), TopicPartition("orders", 2)), orders)
