"""Tell from a module's text alone which of its expressions are sets.

What is known: literals, comprehensions, calls of `set` and `frozenset`, set operators and methods, and whatever is
annotated as a set or as a mapping or sequence of sets (names, parameters, fields, properties, results of functions).
Fields and functions are known by their name alone, so one declared in another of the checked files counts where every
declaration of that name agrees. What comes through an unannotated call or a type alias is not known.
"""

from __future__ import annotations

import ast
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final

from attrs import define, field, frozen


class Kind(Enum):
    """What an expression is, as far as sets are concerned."""

    SET = auto()
    MAPPING = auto()
    """A mapping whose values are sets."""
    SEQUENCE = auto()
    """An ordered iterable of sets."""
    OTHER = auto()


Scope = ChainMap[str, Kind]
"""What the names in sight are, innermost first."""

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES: Final = (*FUNCTIONS, *COMPREHENSIONS, ast.Lambda, ast.ClassDef)

_ABSTRACT_SETS: Final = ("AbstractSet", "FrozenSet", "MutableSet", "Set")
_ABSTRACT_MODULES: Final = ("typing", "collections.abc")
_MAPPINGS: Final = ("defaultdict", "dict", "Mapping", "MutableMapping")
_SEQUENCES: Final = ("Iterable", "Iterator", "list", "Sequence", "tuple")
_WRAPPERS: Final = ("Annotated", "ClassVar", "Final")
_SET_METHODS: Final = ("copy", "difference", "intersection", "symmetric_difference", "union")
_SET_OPERATORS: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


@frozen
class Annotations:
    """Reads annotations. `sets` are the names that mean a set in the module: `set` and what it imports as one."""

    sets: frozenset[str]

    @classmethod
    def of(cls, module: ast.Module) -> Annotations:
        """Take the names from a module's imports."""
        names = {"set", "frozenset"}
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.module in _ABSTRACT_MODULES:
                names.update(alias.asname or alias.name for alias in node.names if alias.name in _ABSTRACT_SETS)
            elif isinstance(node, ast.Import):
                modules = [alias.asname or alias.name for alias in node.names if alias.name in _ABSTRACT_MODULES]
                names.update(f"{name}.{abstract}" for name in modules for abstract in _ABSTRACT_SETS)
        return cls(frozenset(names))

    def kind(self, node: ast.expr | None) -> Kind:
        """Say what an annotation declares."""
        match node:
            case ast.Constant(value=str(text)):
                return self.kind(ast.parse(text, mode="eval").body)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return first_known((self.kind(left), self.kind(right)))
            case ast.Subscript(value=base, slice=inner):
                return self._generic(ast.unparse(base), inner.elts if isinstance(inner, ast.Tuple) else [inner])
            case ast.Name() | ast.Attribute() if ast.unparse(node) in self.sets:
                return Kind.SET
        return Kind.OTHER

    def _generic(self, base: str, arguments: list[ast.expr]) -> Kind:
        if base in self.sets:
            return Kind.SET
        name = base.rpartition(".")[2]
        if name in _WRAPPERS:
            return self.kind(arguments[0])
        if name in _MAPPINGS and self.kind(arguments[-1]) is Kind.SET:
            return Kind.MAPPING
        if name in _SEQUENCES and all(
            self.kind(argument) is Kind.SET for argument in arguments if not _is_dots(argument)
        ):
            return Kind.SEQUENCE
        return Kind.OTHER


@define
class Declarations:
    """The kinds that fields and properties (`values`) and functions (`results`) are declared with, by name."""

    values: dict[str, list[Kind]] = field(factory=lambda: defaultdict(list))
    results: dict[str, list[Kind]] = field(factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, module: ast.Module) -> Declarations:
        """Read what a module declares."""
        found = cls()
        annotations = Annotations.of(module)
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                found._add_fields(node, annotations)
            elif isinstance(node, FUNCTIONS):
                table = found.values if _is_property(node) else found.results
                table[node.name].append(annotations.kind(node.returns))
        return found

    def _add_fields(self, owner: ast.ClassDef, annotations: Annotations) -> None:
        for node in ast.walk(owner):
            match node:
                case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    self.values[name].append(annotations.kind(node.annotation))
                case ast.AnnAssign(target=ast.Name(id=name)) if node in owner.body:
                    self.values[name].append(annotations.kind(node.annotation))
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                    if _is_plainly_a_set(value):
                        self.values[name].append(Kind.SET)

    def merge(self, other: Declarations) -> None:
        """Take over what another module declares."""
        for mine, others in ((self.values, other.values), (self.results, other.results)):
            for name, kinds in others.items():
                mine[name].extend(kinds)


@frozen
class SetTypes:
    """The kinds of one module's expressions. `elsewhere` has the declarations of all files that are checked."""

    annotations: Annotations
    here: Declarations
    elsewhere: Declarations

    def value(self, name: str) -> Kind:
        """Say what the field or property `name` of any object is."""
        return _declared(self.here.values.get(name), self.elsewhere.values.get(name))

    def result(self, name: str) -> Kind:
        """Say what a call of the function or method `name` returns."""
        return _declared(self.here.results.get(name), self.elsewhere.results.get(name))

    def kind(self, node: ast.expr, scope: Scope) -> Kind:
        """Say what an expression is, given the names in sight."""
        return _KindOf(self, scope).visit(node)

    def inside(self, node: ast.AST, outer: Scope) -> Scope:
        """Return the names in sight inside a module, class, function, lambda or comprehension."""
        scope: Scope = outer.new_child()
        for part in _own_nodes(node):
            match part:
                case ast.arg(arg=name, annotation=annotation):
                    _bind(scope, name, self.annotations.kind(annotation))
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                    kinds = (self.annotations.kind(annotation), self.kind(value, scope) if value else Kind.OTHER)
                    _bind(scope, name, first_known(kinds))
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._bind_value(scope, target, value)
                case ast.NamedExpr(target=ast.Name(id=name), value=value):
                    _bind(scope, name, self.kind(value, scope))
                case ast.For() | ast.comprehension():
                    self._bind_element(scope, part.target, part.iter)
        return scope

    def _bind_value(self, scope: Scope, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for each, its_value in zip(targets, values, strict=True):
                    self._bind_value(scope, each, its_value)
            case _:
                _bind_target(scope, target, self.kind(value, scope))

    def _bind_element(self, scope: Scope, target: ast.expr, iterated: ast.expr) -> None:
        match target, iterated:
            case (ast.Tuple(elts=[key, ast.Name(id=name)]), ast.Call(func=ast.Attribute(value=owner, attr="items"))):
                _bind_target(scope, key, Kind.OTHER)
                _bind(scope, name, Kind.SET if self.kind(owner, scope) is Kind.MAPPING else Kind.OTHER)
            case _:
                is_set = self.kind(iterated, scope) is Kind.SEQUENCE
                _bind_target(scope, target, Kind.SET if is_set else Kind.OTHER)


@frozen
class _KindOf(ast.NodeVisitor):
    """Computes the kind of an expression; each method is named after the node that it understands."""

    types: SetTypes
    scope: Scope

    def visit(self, node: ast.AST) -> Kind:
        if isinstance(node, (ast.Set, ast.SetComp)):
            return Kind.SET
        kind: Kind | None = super().visit(node)
        return kind or Kind.OTHER

    def visit_Name(self, node: ast.Name) -> Kind:
        return self.scope.get(node.id, Kind.OTHER)

    def visit_Attribute(self, node: ast.Attribute) -> Kind:
        return self.types.value(node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> Kind:
        held = self.visit(node.value) in {Kind.MAPPING, Kind.SEQUENCE}
        return Kind.SET if held and not isinstance(node.slice, ast.Slice) else Kind.OTHER

    def visit_BinOp(self, node: ast.BinOp) -> Kind:
        is_set = isinstance(node.op, _SET_OPERATORS) and any(
            self.visit(side) is Kind.SET or _is_key_view(side) for side in (node.left, node.right)
        )
        return Kind.SET if is_set else Kind.OTHER

    def visit_BoolOp(self, node: ast.BoolOp) -> Kind:
        return first_known(self.visit(value) for value in node.values)

    def visit_IfExp(self, node: ast.IfExp) -> Kind:
        return first_known((self.visit(node.body), self.visit(node.orelse)))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Kind:
        return self.visit(node.value)

    def visit_Await(self, node: ast.Await) -> Kind:
        return self.visit(node.value)

    def visit_DictComp(self, node: ast.DictComp) -> Kind:
        is_set = self.types.kind(node.value, self.types.inside(node, self.scope)) is Kind.SET
        return Kind.MAPPING if is_set else Kind.OTHER

    def visit_Dict(self, node: ast.Dict) -> Kind:
        is_set = any(self.visit(value) is Kind.SET for value in node.values)
        return Kind.MAPPING if is_set else Kind.OTHER

    def visit_Call(self, node: ast.Call) -> Kind:
        match node:
            case ast.Call(
                func=ast.Name(id="set" | "frozenset") | ast.Subscript(value=ast.Name(id="set" | "frozenset"))
            ):
                return Kind.SET
            case ast.Call(func=ast.Name(id="defaultdict"), args=[factory, *_]) if _is_set_type(factory):
                return Kind.MAPPING
            case ast.Call(func=ast.Name(id=name)):
                return self.types.result(name)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                return self._method(self.visit(owner), name)
        return Kind.OTHER

    def _method(self, owner: Kind, name: str) -> Kind:
        match owner:
            case Kind.SET:
                return Kind.SET if name in _SET_METHODS else Kind.OTHER
            case Kind.MAPPING if name in {"get", "pop", "setdefault"}:
                return Kind.SET
            case Kind.MAPPING if name == "values":
                return Kind.SEQUENCE
        return self.types.result(name)


def first_known(kinds: Iterable[Kind]) -> Kind:
    """Return the first kind that says something about sets."""
    return next((kind for kind in kinds if kind is not Kind.OTHER), Kind.OTHER)


def _declared(here: list[Kind] | None, elsewhere: list[Kind] | None) -> Kind:
    if here:
        return first_known(here)
    return elsewhere[0] if elsewhere and len(set(elsewhere)) == 1 else Kind.OTHER


def _bind(scope: Scope, name: str, kind: Kind) -> None:
    scope[name] = first_known((scope.maps[0].get(name, Kind.OTHER), kind))


def _bind_target(scope: Scope, target: ast.expr, kind: Kind) -> None:
    if isinstance(target, ast.Name):
        _bind(scope, target.id, kind)
        return
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            _bind(scope, node.id, Kind.OTHER)


def _is_set_type(node: ast.expr) -> bool:
    """Whether this is `set`, `frozenset` or one of them with the type of its elements."""
    name = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(name, ast.Name) and name.id in {"set", "frozenset"}


def _is_plainly_a_set(node: ast.expr) -> bool:
    return isinstance(node, (ast.Set, ast.SetComp)) or (isinstance(node, ast.Call) and _is_set_type(node.func))


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_key_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"keys", "items"}


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(decorators & {"property", "cached_property"})


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is inside `node` in source order, but for what has a scope of its own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, SCOPES):
            yield from _own_nodes(child)
