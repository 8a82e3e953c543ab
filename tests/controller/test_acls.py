"""Kafka's ACLs: what they allow, as its AclAuthorizer decides it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, strategies as st

from controller.model.acls import AclRules, Acls, Entries
from tests.kit.examples import examples
from transport.acls import ANY_USER, CLUSTER, AclEntry, Operation, Pattern, PatternType, Resource, ResourceType
from transport.security.principal import Principal

ALICE: Final = Principal("User", "alice")
BOB: Final = Principal("User", "bob")
HOST: Final = "10.0.0.1"
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
RULES: Final = AclRules()
O = Operation  # noqa: E741


def topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def allow(operation: Operation | None, who: Principal = ALICE, host: str = "*") -> AclEntry:
    return AclEntry(who, True, host, operation)  # noqa: FBT003


def deny(operation: Operation | None, who: Principal = ALICE, host: str = "*") -> AclEntry:
    return AclEntry(who, False, host, operation)  # noqa: FBT003


def on(name: str, *entries: AclEntry, kind: PatternType = LITERAL) -> tuple[Pattern, Entries]:
    return Pattern(kind, topic(name)), frozenset(entries)


@pytest.mark.parametrize(
    ("acls", "operation", "expected"),
    [
        # Nothing is allowed that no entry allows.
        ([], O.READ, False),
        ([on("orders")], O.READ, False),
        ([on("orders", allow(O.READ))], O.READ, True),
        ([on("orders", allow(O.READ))], O.WRITE, False),
        ([on("orders", allow(O.ALL))], O.WRITE, True),
        ([on("orders", allow(None))], O.READ, False),
        # Principals and hosts.
        ([on("orders", allow(O.READ, BOB))], O.READ, False),
        ([on("orders", allow(O.READ, Principal("Group", "alice")))], O.READ, False),
        ([on("orders", allow(O.READ, ANY_USER))], O.READ, True),
        ([on("orders", allow(O.READ, host=HOST))], O.READ, True),
        ([on("orders", allow(O.READ, host="10.0.0.2"))], O.READ, False),
        # Patterns.
        ([on("*", allow(O.READ))], O.READ, True),
        ([on("ord", allow(O.READ))], O.READ, False),
        ([on("ord", allow(O.READ), kind=PREFIXED)], O.READ, True),
        ([on("orders", allow(O.READ), kind=PREFIXED)], O.READ, True),
        ([on("orders-", allow(O.READ), kind=PREFIXED)], O.READ, False),
        ([on("*", allow(O.READ), kind=PREFIXED)], O.READ, False),
        # A denial decides, wherever it stands.
        ([on("orders", allow(O.READ), deny(O.READ))], O.READ, False),
        ([on("orders", allow(O.READ)), on("*", deny(O.READ, ANY_USER))], O.READ, False),
        ([on("orders", allow(O.READ)), on("o", deny(O.ALL), kind=PREFIXED)], O.READ, False),
        ([on("orders", allow(O.READ), deny(O.WRITE))], O.READ, True),
        ([on("orders", allow(O.READ), deny(O.READ, BOB))], O.READ, True),
        ([on("orders", allow(O.READ), deny(O.READ, host="10.0.0.2"))], O.READ, True),
        # Implied operations. A denial implies nothing.
        ([on("orders", allow(O.READ))], O.DESCRIBE, True),
        ([on("orders", allow(O.WRITE))], O.DESCRIBE, True),
        ([on("orders", allow(O.DELETE))], O.DESCRIBE, True),
        ([on("orders", allow(O.ALTER))], O.DESCRIBE, True),
        ([on("orders", allow(O.CREATE))], O.DESCRIBE, False),
        ([on("orders", allow(O.ALTER_CONFIGS))], O.DESCRIBE_CONFIGS, True),
        ([on("orders", allow(O.ALTER_CONFIGS))], O.DESCRIBE, False),
        ([on("orders", allow(O.DESCRIBE))], O.READ, False),
        ([on("orders", allow(O.ALL), deny(O.READ))], O.DESCRIBE, True),
        ([on("orders", allow(O.READ), deny(O.DESCRIBE))], O.DESCRIBE, False),
    ],
)
def test_what_acls_of_a_topic_allow(acls: list[tuple[Pattern, Entries]], operation: Operation, expected: bool) -> None:
    assert RULES.allow(Acls(dict(acls)), ALICE, HOST, operation, topic("orders")) is expected
    assert not RULES.allow(Acls(dict(acls)), ALICE, HOST, operation, CLUSTER), "topics and the cluster are apart"


@pytest.mark.parametrize("is_lenient", [False, True])
def test_a_resource_without_acls_may_be_open_to_everybody(is_lenient: bool) -> None:
    rules = AclRules(allow_everyone_if_no_acl_found=is_lenient)
    acls = Acls(dict([on("orders", allow(O.READ, BOB)), on("pay", kind=LITERAL), on("p", kind=PREFIXED)]))
    assert rules.allow(acls, ALICE, HOST, O.READ, topic("other")) is is_lenient
    assert rules.allow(acls, ALICE, HOST, O.READ, topic("pay")) is is_lenient, "lists of no entries"
    assert not rules.allow(acls, ALICE, HOST, O.READ, topic("orders"))


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (Pattern(LITERAL, topic("orders")), "orders", False),
        (Pattern(LITERAL, topic("orders")), "other", True),
        (Pattern(LITERAL, topic("*")), "other", False),
        (Pattern(PREFIXED, topic("o")), "other", False),
        (Pattern(LITERAL, CLUSTER), "other", True),
    ],
)
def test_acls_that_cannot_be_read_deny_what_they_could_be_about(pattern: Pattern, name: str, expected: bool) -> None:
    rules = AclRules(frozenset({BOB}), allow_everyone_if_no_acl_found=True)
    acls = Acls({pattern: None, **dict([on("other", allow(O.READ))])})
    assert rules.allow(acls, ALICE, HOST, O.READ, topic(name)) is expected
    assert rules.allow(acls, BOB, HOST, O.READ, topic(name)), "a super user may do everything"


def test_nobody_but_super_users_is_let_in_while_the_acls_are_not_known() -> None:
    rules = AclRules(frozenset({BOB}), allow_everyone_if_no_acl_found=True)
    unknown = Acls(dict([on("*", allow(O.ALL))]), is_complete=False)
    assert not rules.allow(unknown, ALICE, HOST, O.READ, topic("orders"))
    assert rules.allow(unknown, BOB, HOST, O.READ, topic("orders"))


NAMES: Final = ("*", "a", "ab", "abc", "b")
ENTRIES: Final = st.builds(
    AclEntry,
    st.sampled_from([ALICE, BOB, ANY_USER]),
    st.booleans(),
    st.sampled_from(["*", HOST, "h"]),
    st.sampled_from([O.ALL, O.READ, O.ALTER, O.DESCRIBE, O.ALTER_CONFIGS, O.DESCRIBE_CONFIGS, None]),
)
PATTERNS: Final = st.builds(
    Pattern,
    st.sampled_from(PatternType),
    st.one_of(st.just(CLUSTER), st.builds(topic, st.sampled_from(NAMES))),
)


def literally(
    acls: dict[Pattern, frozenset[AclEntry]], operation: Operation, resource: Resource, *, lenient: bool
) -> bool:
    """Decide step by step as the description of Kafka's authorizer goes, over all patterns and entries."""
    found = [
        entry
        for pattern, entries in acls.items()
        if pattern.resource.type is resource.type
        and (
            resource.name.startswith(pattern.resource.name)
            if pattern.type is PREFIXED
            else pattern.resource.name in (resource.name, "*")
        )
        for entry in entries
    ]
    if not found:
        return lenient
    matching = [entry for entry in found if entry.principal in (ALICE, ANY_USER) and entry.host in (HOST, "*")]
    if any(not entry.is_allowed and entry.operation in (operation, O.ALL) for entry in matching):
        return False
    implied = {O.DESCRIBE: {O.READ, O.WRITE, O.DELETE, O.ALTER}, O.DESCRIBE_CONFIGS: {O.ALTER_CONFIGS}}
    sufficient = {operation, O.ALL} | implied.get(operation, set())
    return any(entry.is_allowed and entry.operation in sufficient for entry in matching)


@examples(100)
@given(
    acls=st.dictionaries(PATTERNS, st.frozensets(ENTRIES, max_size=3), max_size=6),
    operation=st.sampled_from([O.READ, O.ALTER, O.DESCRIBE, O.ALTER_CONFIGS, O.DESCRIBE_CONFIGS]),
    resource=st.one_of(st.just(CLUSTER), st.builds(topic, st.sampled_from(NAMES[1:]))),
    lenient=st.booleans(),
)
def test_any_acls_decide_as_their_description_does(
    acls: dict[Pattern, frozenset[AclEntry]], operation: Operation, resource: Resource, lenient: bool
) -> None:
    rules = AclRules(allow_everyone_if_no_acl_found=lenient)
    expected = literally(acls, operation, resource, lenient=lenient)
    assert rules.allow(Acls(dict(acls)), ALICE, HOST, operation, resource) is expected
