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
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

ClassT = TypeVar("ClassT")
_set = object.__setattr__
_FEW_CALLS = 50
"""So many calls of a general `__init__` take longer than those of a compiled one by what it takes to compile it. Many
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
    known = dataclasses.fields(cls)
    names = {f.name: None for f in known}
    taken = tuple(f.name for f in known if not f.kw_only)
    defaults = {f.name: f.default for f in known if f.default is not MISSING}
    has_more = hasattr(cls, "__post_init__")
    store = _set if frozen else setattr
    left = _FEW_CALLS if all(f.init and f.default_factory is MISSING for f in known) else 0

    def late(self: Any, *args: Any, **named: Any) -> None:
        nonlocal left
        if left > 0 and not named and len(args) == len(names) == len(taken):
            left -= 1
            for name, value in zip(taken, args, strict=True):
                store(self, name, value)
            if has_more:
                self.__post_init__()
            return
        left -= bool(args or named)
        given = defaults | dict(zip(taken, args, strict=False)) | named
        is_once = len(args) <= len(taken) and named.keys().isdisjoint(taken[: len(args)])
        if left < 0 or not is_once or given.keys() != names.keys():
            init = _compiled_init(cls, frozen)
            if vars(cls).get("__init__") is late:
                cls.__init__ = init
            init(self, *args, **named)
            return
        for name in names:
            store(self, name, given[name])
        if has_more:
            self.__post_init__()

    return late


def _compiled_init(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """The function that sets each field, to an argument or to its default."""
    names: dict[str, Any] = {"_set": _set, "_MISSING": MISSING}
    known = [f for f in dataclasses.fields(cls) if f.init or f.default_factory is not MISSING]
    taken = [f for f in known if f.init]
    words = ["self", *(_parameter(f, names) for f in taken if not f.kw_only)]
    if by_name := [_parameter(f, names) for f in taken if f.kw_only]:
        words += ["*", *by_name]
    lines: list[str] = []
    for f in known:
        value = f.name
        if f.default_factory is not MISSING:
            names[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}() if {f.name} is _MISSING else {f.name}" if f.init else f"_make_{f.name}()"
        lines.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(words)}):\n " + "\n ".join(lines or ["pass"]), names)
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _parameter(f: Field[Any], names: dict[str, Any]) -> str:
    if f.default_factory is not MISSING:
        return f"{f.name}=_MISSING"
    if f.default is MISSING:
        return f.name
    names[f"_default_{f.name}"] = f.default
    return f"{f.name}=_default_{f.name}"


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
