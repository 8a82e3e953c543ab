from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.house.set_order import check, main

HEADER = """\
from collections.abc import Mapping, MutableSet, Set as AbstractSet
import typing as t
class Broker:
    isr: frozenset[int]
    by_topic: Mapping[str, set[int]]
    replicas: tuple[int, ...]
    @property
    def live(self) -> set[int]: ...
    def led(self) -> set[int]: ...
def affected() -> "set[int]": ...
"""


def problems(source: str, **others: str) -> list[str]:
    found = check({"module": textwrap.dedent(source), **others})
    return [finding.problem for _, finding in found]


def inside_function(body: str) -> str:
    parameters = "s: set[str], d: dict[str, set[str]], m: list[set[str]], b: Broker, plain: list[str]"
    return f"{HEADER}def function({parameters}):\n{textwrap.indent(body, '    ')}\n"


@pytest.mark.parametrize(
    "statement",
    [
        "for x in s: print(x)",
        "[f(x) for x in s]",
        "{x: 1 for x in s}",
        "f(x for x in s)",
        "[(x, y) for x in plain for y in s]",
        "list(s)",
        "tuple(s)",
        "deque(s)",
        "print(s)",
        "repr(s)",
        "enumerate(s)",
        "zip(plain, s)",
        "list(map(str, s))",
        "filter(f, s)",
        "itertools.chain(plain, s)",
        "dict.fromkeys(s)",
        "plain.extend(s)",
        "', '.join(s)",
        "next(iter(s))",
        "s.pop()",
        "[*plain, *s]",
        "print(*s)",
        "x, y = s",
        "x, *rest = s",
        "yield from s",
        "f'{s}'",
        "str(s)",
        "sorted(s, key=len)",
        "sorted(s, key=lambda x: (x, len(x)))",
        "min(s, key=lambda x: len(x))",
        "max(s, key=f)",
        "sorted(enumerate(s))",
    ],
)
def test_flags_what_takes_the_order_of_a_set(statement: str) -> None:
    assert len(problems(inside_function(statement))) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "for x in sorted(s): print(x)",
        "[f(x) for x in sorted(s)]",
        "len(s), min(s), max(s), sum(s), any(s), all(s)",
        "x in s and s == {1}",
        "sorted(f(x) for x in s)",
        "sorted([f(x) for x in s])",
        "sorted(list(map(str, s)))",
        "sorted(s, key=lambda x: (len(x), x))",
        "sorted(sorted(s), key=len)",
        "sorted(filter(f, chain(s, plain)))",
        "sum(1 for x in s)",
        "any(f(x) for x in s)",
        "len([f(x) for x in s])",
        "frozenset(f(x) for x in s)",
        "all(x for y in m for x in y)",
        "max(*s)",
        "{f(x) for x in s}",
        "{f(x) for x in list(s)}",
        "{*s, 'more'}",
        "frozenset(s)",
        "set(map(str, s))",
        "s.update(f(x) for x in s)",
        "s | {'more'}",
        "(only,) = s",
        "[only] = s",
        "for x in plain: print(x)",
        "for x in d: print(x)",
        "d.pop('topic')",
        "for x in b.replicas: print(x)",
    ],
)
def test_leaves_alone_what_does_not(statement: str) -> None:
    assert problems(inside_function(statement)) == []


@pytest.mark.parametrize(
    "expression",
    [
        "{1, 2}",
        "{x for x in plain}",
        "set(plain)",
        "frozenset(plain)",
        "set[str]()",
        "s | f()",
        "s - f()",
        "f() & s",
        "d.keys() - f()",
        "s.union(plain)",
        "s.copy()",
        "s.difference(plain)",
        "s.intersection(plain)",
        "s.symmetric_difference(plain)",
        "s or plain",
        "s if f() else plain",
        "(y := s)",
        "d['topic']",
        "d.get('topic', ())",
        "d.setdefault('topic', f())",
        "m[0]",
        "b.isr",
        "b.live",
        "b.led()",
        "b.by_topic['topic']",
        "affected()",
        "{'topic': {1}}['topic']",
        "{x: {x} for x in plain}['topic']",
    ],
)
def test_sees_that_an_expression_is_a_set(expression: str) -> None:
    assert problems(inside_function(f"list({expression})")) == ["list() takes the order of a set"]


@pytest.mark.parametrize(
    "annotation",
    [
        "set[int]",
        "frozenset",
        "AbstractSet[int]",
        "MutableSet[int]",
        "t.AbstractSet[int]",
        "t.FrozenSet[int]",
        "set[int] | None",
        "None | frozenset[int]",
        "t.Final[set[int]]",
        "t.ClassVar[set[int]]",
        "t.Annotated[set[int], 'sorted later']",
        "'set[int]'",
    ],
)
def test_understands_annotations(annotation: str) -> None:
    assert problems(f"{HEADER}def function(it: {annotation}): return list(it)")
    assert problems(f"{HEADER}it: {annotation} = f()\nlist(it)")
    assert problems(f"{HEADER}async def function(*, it: {annotation}): return [x async for x in f(list(it))]")


@pytest.mark.parametrize(
    "annotation",
    [
        "dict[str, set[int]]",
        "defaultdict[str, set[int]]",
        "Mapping[str, set[int]]",
        "MutableMapping[str, set[int]]",
        "list[set[int]]",
        "Sequence[set[int]]",
        "tuple[set[int], ...]",
    ],
)
def test_sees_what_holds_sets(annotation: str) -> None:
    assert problems(f"def function(it: {annotation}): return list(it[x])") == ["list() takes the order of a set"]


@pytest.mark.parametrize("annotation", ["Iterable[set[int]]", "Iterator[set[int]]"])
def test_sees_what_yields_sets(annotation: str) -> None:
    assert len(problems(f"def function(it: {annotation}): return [x for each in it for x in each]")) == 1


@pytest.mark.parametrize(
    "annotation", ["list[int]", "Set", "dict[int, int]", "tuple[int, set[int]]", "tuple[int, ...]"]
)
def test_does_not_take_other_annotations_for_sets(annotation: str) -> None:
    source = f"from transport.store.protocol import Set\ndef f(it: {annotation}):"
    assert problems(f"{source} return list(it), list(it[0])") == []


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    it = set()\n    return list(it)",
        "it: Final = frozenset({1})\nlist(it)",
        "it, other = set(), []\nlist(it)\nlist(other)",
        "if it := {1}: list(it)",
        "it = {1}\ndef f():\n    return [x for x in it]",
        "f = lambda it={1}: list({*it} | {2})",
        "class A:\n    def __init__(self): self.it = set()\n    def f(self): return list(self.it)",
        "class A:\n    def __init__(self): self.it: set[int] = f()\n    def f(self): return list(self.it)",
        "def f(d: dict[int, set[int]]):\n    for it in d.values():\n        list(it)",
        "def f(d: dict[int, set[int]]):\n    for k, it in d.items():\n        list(it)",
        "def f(d: dict[int, set[int]]):\n    return [x for it in d.values() for x in it]",
        "from collections import defaultdict\nd = defaultdict(set)\nlist(d[1])",
        "async def g() -> set[int]: ...\nasync def f(): return list(await g())",
    ],
)
def test_follows_names(source: str) -> None:
    assert len(problems(source)) == 1


@pytest.mark.parametrize(
    "function",
    [
        "def f(it: list[int]): return list(it)",
        "def f():\n    it = g()\n    return list(it)",
        "def f():\n    it, other = g()\n    return list(it)",
        "def f():\n    for it in g(): list(it)",
        "def f():\n    for it, other in g().items(): list(it)",
        "def f(): return [list(it) for it in g()]",
    ],
)
def test_a_name_hides_the_same_name_further_out(function: str) -> None:
    assert problems(f"it = {{1}}\n{function}") == []


def test_knows_fields_and_functions_of_the_other_files() -> None:
    declarations = "class Context:\n    live: set[int]\ndef affected() -> set[int]: ..."
    assert len(problems("def f(context): return list(context.live), list(affected())", other=declarations)) == 2


def test_does_not_guess_where_other_files_disagree() -> None:
    first, second = "class A:\n    live: set[int]", "class B:\n    live: list[int]"
    assert problems("def f(context): return list(context.live)", first=first, second=second) == []


@pytest.mark.parametrize(
    "source",
    [
        "list({1, 2})  # set-order: small ints, sorted by the caller",
        "# set-order: sorted by the caller\nlist({1, 2})",
        "# set-order: sorted by the caller,\n# which knows more\nlist({1, 2})",
        "f(\n    list(\n        {1, 2}  # set-order: sorted by the caller\n    )\n)",
        "for x in {1, 2}:  # set-order: each is told by itself\n    f(x)",
    ],
)
def test_a_reason_excuses(source: str) -> None:
    assert problems(source) == []


@pytest.mark.parametrize("comment", ["# set-order:", "# set-order", "# set-order:   "])
def test_an_escape_without_a_reason_excuses_nothing(comment: str) -> None:
    assert problems(f"list({{1, 2}})  {comment}") == ["the escape gives no reason", "list() takes the order of a set"]


def test_an_escape_with_nothing_to_excuse_is_a_finding() -> None:
    assert problems("sorted({1})  # set-order: a relic") == ["the escape excuses nothing"]


def test_a_string_is_no_escape() -> None:
    assert problems("f(list({1}), '# set-order: not a comment')") == ["list() takes the order of a set"]


def test_the_command_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "module.py").write_text("x = 1\ny = list({1})\n")
    assert main([str(folder)]) == 1
    assert f"{folder / 'module.py'}:2:5: list() takes the order of a set" in capsys.readouterr().out


def test_the_command_is_quiet_about_what_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text("sorted({1})\n")
    assert main([str(tmp_path / "module.py")]) == 0
    assert capsys.readouterr().out == "set-order: 1 files, nothing found\n"


@pytest.mark.parametrize("content", [None, "def f(:\n"])
def test_the_command_refuses_what_it_cannot_read(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "module.py"
    if content is not None:
        path.write_text(content)
    assert main([str(path)]) == 2
    assert str(path) in capsys.readouterr().out
