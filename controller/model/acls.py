"""The permissions that Kafka's ACLs give, by the rules of its AclAuthorizer.

- Super users may do everything.
- The ACLs of a resource are those of its name, those of each prefix of it, and those of `*`.
- A denial that matches decides, and only then a permission. Read, Write, Delete and Alter imply Describe, and
  AlterConfigs implies DescribeConfigs; a denial implies nothing.
- A resource without ACLs is for super users alone, unless `allow.everyone.if.no.acl.found`.
- ACLs that cannot be read deny everything that they could be about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from transport.acls import ANY, ANY_USER, AclEntry, Operation, Pattern, PatternType, Resource, ResourceType
from transport.security.principal import Principal

IMPLIED_BY: Final = MappingProxyType(
    {
        Operation.DESCRIBE: frozenset(
            {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
        ),
        Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
    }
)
"""The operations of which each implies an operation."""

Entries = frozenset[AclEntry] | None
"""The entries of a pattern; None if they cannot be read."""


@frozen
class Acls:
    """All ACLs of the types of resources that a controller is asked about."""

    entries: Mapping[Pattern, Entries] = field(factory=lambda: MappingProxyType({}))
    is_complete: bool = True
    """Whether all patterns are known."""

    _lengths: Mapping[ResourceType, tuple[int, ...]] = field(init=False, repr=False, eq=False)
    """The lengths of the prefixes."""

    @_lengths.default
    def _find_lengths(self) -> Mapping[ResourceType, tuple[int, ...]]:
        lengths: dict[ResourceType, set[int]] = {type_: set() for type_ in ResourceType}
        for pattern in self.entries:
            if pattern.type is PatternType.PREFIXED:
                lengths[pattern.resource.type].add(len(pattern.resource.name))
        return {type_: tuple(sorted(found)) for type_, found in lengths.items()}

    def about(self, resource: Resource) -> Iterator[Entries]:
        """Yield the entries of each pattern that a resource matches."""
        for pattern in self._patterns(resource):
            if pattern in self.entries:
                yield self.entries[pattern]

    def _patterns(self, resource: Resource) -> Iterator[Pattern]:
        type_, name = resource.type, resource.name
        yield Pattern(PatternType.LITERAL, resource)
        if name != ANY:
            yield Pattern(PatternType.LITERAL, Resource(type_, ANY))
        for length in self._lengths[type_]:
            if length <= len(name):
                yield Pattern(PatternType.PREFIXED, Resource(type_, name[:length]))


@frozen
class AclRules:
    """The rules by which ACLs decide, with what their settings say."""

    super_users: frozenset[Principal] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    def allow(self, acls: Acls, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        """Return whether a principal at a host may perform an operation on a resource."""
        if principal in self.super_users:
            return True
        if not acls.is_complete:
            return False
        entries: list[AclEntry] = []
        for found in acls.about(resource):
            if found is None:
                return False
            entries += found
        if not entries:
            return self.allow_everyone_if_no_acl_found
        ours = [entry for entry in entries if _is_about(entry, principal, host)]
        if _matches((entry for entry in ours if not entry.is_allowed), frozenset({operation})):
            return False
        sufficient = IMPLIED_BY.get(operation, frozenset({operation}))
        return _matches((entry for entry in ours if entry.is_allowed), sufficient)


def _is_about(entry: AclEntry, principal: Principal, host: str) -> bool:
    return entry.principal in (principal, ANY_USER) and entry.host in (host, ANY)


def _matches(entries: Iterable[AclEntry], operations: frozenset[Operation]) -> bool:
    return any(entry.operation in operations or entry.operation is Operation.ALL for entry in entries)
