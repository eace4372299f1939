"""Data classes whose functions are made when they are first needed.

`dataclass` of the standard library writes up to six functions of a class as text and has Python compile them, 0.15 to
0.4 ms a class: with the 160 classes of a pipeline that was half of what loading its passes took, and a compile makes
objects of a third of them. This one has the same fields, so that `fields`, `replace` and `is_dataclass` work, and the
same meaning. Only `__init__` is compiled, when a class has made some objects; the others need no text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

ClassT = TypeVar("ClassT")
_set = object.__setattr__
_FEW_CALLS = 10
"""So many calls of a general `__init__` take longer than those of a compiled one by what it takes to make it. Many
classes make fewer objects."""


@overload
def dataclass(cls: type[ClassT], /) -> type[ClassT]: ...
@overload
def dataclass(*, frozen: bool = ..., eq: bool = ..., repr: bool = ...) -> Callable[[type[ClassT]], type[ClassT]]: ...
@dataclass_transform(field_specifiers=(field,))
def dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
    """What `dataclasses.dataclass` does, for these of its options."""

    def decorate(decorated: type[Any]) -> type[Any]:
        return _made(decorated, frozen, eq, repr)

    return decorate if cls is None else decorate(cls)


def _made(cls: type[Any], frozen: bool, eq: bool, shown: bool) -> type[Any]:
    bases = [b.__dict__ for b in cls.__mro__[-1:0:-1] if "__dataclass_fields__" in b.__dict__]
    if any(base["__dataclass_params__"].frozen != frozen for base in bases):
        raise TypeError(f"{cls.__name__}: a data class is frozen where the one that it derives from is")
    own = _own_fields(cls)
    cls.__dataclass_params__ = own.__dataclass_params__
    cls.__dataclass_params__.frozen, cls.__dataclass_params__.eq = frozen, eq
    found: dict[str, Field[Any]] = {}
    for base in bases:
        found.update(base["__dataclass_fields__"])
    found.update(own.__dataclass_fields__)
    cls.__dataclass_fields__ = found
    known = dataclasses.fields(cls)
    _set_new(cls, "__match_args__", tuple(f.name for f in known if f.init and not f.kw_only))
    cls.__init__ = _late_init(cls, frozen)
    if shown:
        _set_new(cls, "__repr__", _repr)
    if eq:
        _compare(cls, frozen, known)
    if frozen:
        _freeze(cls, frozenset(f.name for f in known))
    return cls


def _own_fields(cls: type[Any]) -> Any:
    """A class without bases whose fields are those that a class adds; their defaults become attributes of the class."""
    taken = vars(cls).get("__annotations__", {})
    given = {name: vars(cls)[name] for name in taken if name in vars(cls)}
    names = {
        "__annotations__": taken,
        "__module__": cls.__module__,
        "__doc__": cls.__name__,
        **given,
    }  # without a text it would look for a signature
    own: Any = type(cls.__name__, (), names)
    dataclasses.dataclass(init=False, repr=False, eq=False)(own)
    for name, value in given.items():
        if isinstance(value, Field):
            if value.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    return own


def _set_new(cls: type[Any], name: str, value: object) -> None:
    """Give a class what it does not define itself."""
    if name not in vars(cls):
        setattr(cls, name, value)


def _late_init(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """An `__init__` that sets the fields one by one.

    It puts a compiled one in its place when it is called often, or with arguments that do not fit: that one tells so.
    """
    known = [
        f for f in dataclasses.fields(cls) if f.init or f.default is MISSING
    ]  # what is not given keeps its default in the class
    names = tuple(f.name for f in known)
    taken = tuple(f.name for f in known if f.init and not f.kw_only)
    given_by_name = frozenset(f.name for f in known if f.init)
    defaults = {f.name: f.default for f in known if f.default is not MISSING}
    makers = [(f.name, f.default_factory) for f in known if f.default_factory is not MISSING]
    is_plain = taken == names
    has_more = hasattr(cls, "__post_init__")
    store = _set if frozen else setattr
    left = _FEW_CALLS

    def complete(args: tuple[Any, ...], named: dict[str, Any]) -> list[Any] | None:
        """The values of all fields, with their defaults; None for arguments that do not fit."""
        if len(args) > len(taken) or not (
            named.keys() <= given_by_name and named.keys().isdisjoint(taken[: len(args)])
        ):
            return None
        given = defaults | dict(zip(taken, args, strict=False)) | named
        for name, make in makers:
            if name not in given:
                given[name] = make()
        return [given[name] for name in names] if len(given) == len(names) else None

    def late(self: Any, *args: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        values = args if is_plain and not named and len(args) == len(names) else complete(args, named)
        if left < 0 or values is None:
            init = _compiled_init(cls, frozen)
            if vars(cls).get("__init__") is late:
                cls.__init__ = init
            init(self, *args, **named)
            return
        for name, value in zip(names, values, strict=True):
            store(self, name, value)
        if has_more:
            self.__post_init__()

    return late


def _compiled_init(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """The function that sets each field, to an argument or to its default: that of all classes with such fields, which
    is compiled once, with the names and defaults of this class."""
    known = [f for f in dataclasses.fields(cls) if f.init or f.default_factory is not MISSING]
    kinds = tuple((f.init, bool(f.kw_only), f.default_factory is not MISSING) for f in known)
    code = _init_code(kinds, frozen, hasattr(cls, "__post_init__"))
    places = {_place(number): f for number, f in enumerate(known)}
    makers = {f"make_{place}": f.default_factory for place, f in places.items() if f.default_factory is not MISSING}
    renamed = _renamed(code, {place: f.name for place, f in places.items()})
    made = FunctionType(renamed, {"set_": _set, "MISSING": MISSING, **makers})
    defaults = {f.name: _default(f) for f in known if f.init and _default(f) is not _NONE}
    by_name = {f.name for f in known if f.kw_only}
    made.__defaults__ = tuple(value for name, value in defaults.items() if name not in by_name)
    made.__kwdefaults__ = {name: value for name, value in defaults.items() if name in by_name}
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


_NONE = object()


def _default(f: Field[Any]) -> Any:
    """What stands for an argument that is not given; what a factory makes is made in the function."""
    return MISSING if f.default_factory is not MISSING else _NONE if f.default is MISSING else f.default


def _place(number: int) -> str:
    return f"field_{number}"


@cache
def _init_code(kinds: tuple[tuple[bool, bool, bool], ...], frozen: bool, has_more: bool) -> CodeType:
    """The code of an `__init__`: of each field whether an argument sets it, by name alone, and whether it is made."""
    places = [_place(number) for number in range(len(kinds))]
    words = ["self", *(place for place, (init, by_name, _) in zip(places, kinds, strict=True) if init and not by_name)]
    if named := [place for place, (init, by_name, _) in zip(places, kinds, strict=True) if init and by_name]:
        words += ["*", *named]
    lines: list[str] = []
    for place, (init, _, is_made) in zip(places, kinds, strict=True):
        value = f"make_{place}()" if is_made else place
        value = f"{value} if {place} is MISSING else {place}" if is_made and init else value
        lines.append(f"set_(self, {place!r}, {value})" if frozen else f"self.{place} = {value}")
    if has_more:
        lines.append("self.__post_init__()")
    names: dict[str, Any] = {}
    exec(f"def __init__({', '.join(words)}):\n " + "\n ".join(lines or ["pass"]), names)
    return names["__init__"].__code__


def _renamed(code: CodeType, names: dict[str, str]) -> CodeType:
    """Code with other names for its arguments and the attributes that it sets."""

    def changed(old: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(names.get(each, each) if type(each) is str else each for each in old)

    return code.replace(
        co_varnames=changed(code.co_varnames), co_names=changed(code.co_names), co_consts=changed(code.co_consts)
    )


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _values(names: list[str]) -> Callable[[Any], Any]:
    """What reads fields as a tuple."""
    if len(names) == 1:
        read = attrgetter(names[0])
        return lambda self: (read(self),)
    return attrgetter(*names) if names else lambda self: ()


def _compare(cls: type[Any], frozen: bool, known: tuple[Field[Any], ...]) -> None:
    """Equal where the fields are; a hash of them where they cannot change, none otherwise."""
    compared = _values([f.name for f in known if f.compare])
    hashed = _values([f.name for f in known if (f.compare if f.hash is None else f.hash)])

    def equal(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if type(other) is type(self) else NotImplemented

    def number(self: Any) -> int:
        return hash(hashed(self))

    own_hash = vars(cls).get("__hash__", MISSING)
    has_own_hash = own_hash is not MISSING and not (own_hash is None and "__eq__" in vars(cls))
    _set_new(cls, "__eq__", equal)
    if not has_own_hash:
        given: Any = cls
        given.__hash__ = number if frozen else None


def _freeze(cls: type[Any], names: frozenset[str]) -> None:
    """Let no field be set or deleted; in a class that derives from this one other attributes may be."""

    def assign(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    given: Any = cls
    given.__setattr__, given.__delattr__ = assign, delete


__all__ = ["dataclass", "field"]
