"""`klamm leader elect`: how partitions are named on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from controller.cli.leaders import leader

PREFERRED = ("elect", "--election-type", "preferred")


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ((), "name either --topic and --partition, --path-to-json-file, or --all-topic-partitions"),
        (("--topic", "orders"), "--topic and --partition go together: name both"),
        (("--partition", "0"), "--topic and --partition go together: name both"),
        (("--topic", "orders", "--partition", "0", "--all-topic-partitions"), "name either --topic and --partition"),
        (("--topic", "orders", "--partition", "-1"), "-1 is not in the range x>=0"),
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
    ],
)
def test_a_file_that_names_no_partitions_is_refused_with_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "election.json"
    file.write_text(text)
    done = CliRunner().invoke(leader, [*PREFERRED, "--path-to-json-file", str(file)])
    assert done.exit_code == 1
    assert fault in done.output
