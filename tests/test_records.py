"""`records.dataclass` makes what `dataclasses.dataclass` makes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from inductile import records


def _classes(dataclass: Callable[..., Any]) -> dict[str, type[Any]]:
    """The same classes by one of the decorators."""

    @dataclass(frozen=True)
    class Point:
        """Fields with and without defaults."""

        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        names: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    @dataclass(frozen=True)
    class Named(Point):
        """One that derives: a default becomes another, and it checks what it is given."""

        y: int = 3
        label: str = dataclasses.field(default="none", repr=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x")

    @dataclass
    class Box:
        """One that changes, with a list of its own."""

        items: list[int] = dataclasses.field(default_factory=list)
        size: int = dataclasses.field(init=False, default=7)
        kept: int = dataclasses.field(default=1, kw_only=True)

    @dataclass(eq=False)
    class Same:
        """One that is equal to nothing but itself."""

        x: int = 0

    @dataclass(frozen=True)
    class Odd:
        """One with a hash and a text of its own."""

        x: int

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "odd"

    @dataclass(frozen=True)
    class Empty:
        """Nothing."""

    return {c.__name__: c for c in (Point, Named, Box, Same, Odd, Empty)}


OURS, THEIRS = _classes(records.dataclass), _classes(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1,), {}), ("Point", (1, 5), {"names": ("a",)}), ("Point", (), {"x": 1, "y": 2}), ("Named", (1,), {}),
    ("Named", (1, 2, ("b",), "c"), {}), ("Box", (), {}), ("Box", ([1],), {"kept": 3}), ("Same", (), {}),
    ("Same", (4,), {}),    ("Odd", (1,), {}), ("Empty", (), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "named"), CALLS)
def test_objects(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    ours, theirs = OURS[name](*args, **named), THEIRS[name](*args, **named)
    if name != "Same":  # its place is part of the text that stands for it otherwise
        assert repr(ours) == repr(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert vars(ours) == vars(theirs)
    other = OURS[name](*args, **named)
    assert (ours == other) == (theirs == THEIRS[name](*args, **named))
    assert ours != theirs
    assert (type(ours).__hash__ is None) == (type(theirs).__hash__ is None)
    if type(ours).__hash__ is not None and name != "Same":
        assert hash(ours) == hash(other) == hash(theirs)
    assert vars(copy.copy(ours)) == vars(ours)


@pytest.mark.parametrize("name", list(OURS))
def test_classes(name: str) -> None:
    def told(cls: type[Any]) -> list[tuple[Any, ...]]:
        return [
            (f.name, f.type, f.default, f.default_factory, f.init, f.repr, f.compare) for f in dataclasses.fields(cls)
        ]

    ours, theirs = OURS[name], THEIRS[name]
    assert told(ours) == told(theirs)
    assert ours.__match_args__ == theirs.__match_args__
    assert {n for n in vars(ours) if not n.startswith("__")} == {n for n in vars(theirs) if not n.startswith("__")}


WRONG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (), {}), ("Point", (1, 2, (), 4), {}), ("Named", (-1,), {}), ("Box", (), {"size": 2}),
    ("Empty", (1,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "named"), WRONG)
def test_wrong_calls(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    for _ in range(2):  # before and after `__init__` is there
        with pytest.raises(Exception) as told:
            OURS[name](*args, **named)
        with pytest.raises(Exception) as expected:
            THEIRS[name](*args, **named)
        assert (type(told.value), str(told.value)) == (type(expected.value), str(expected.value))


def test_frozen_objects_do_not_change() -> None:
    point = OURS["Named"](1)
    for name in ("x", "label", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 3)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(point, name)
    assert dataclasses.replace(point, y=9).y == 9


def test_plain_subclasses_have_attributes_of_their_own() -> None:
    class Plain(OURS["Point"]):
        pass

    plain = Plain(4)
    plain.more = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.x = 1
    assert plain != OURS["Point"](4)


def test_frozen_classes_derive_from_frozen_ones() -> None:
    with pytest.raises(TypeError, match="frozen"):

        @records.dataclass
        class _Changes(OURS["Point"]):
            z: int = 0


def test_those_of_the_standard_library_derive_from_ours() -> None:
    @dataclasses.dataclass(frozen=True)
    class More(OURS["Point"]):
        z: int = 0

    assert More(1, z=4) == More(1, 2, (), 4)
    assert repr(More(1)).endswith("More(x=1, y=2, names=(), z=0)")


@records.dataclass(frozen=True)
class _Kept:
    """In a module, so that it can be pickled."""

    x: int
    y: tuple[int, ...] = ()


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(_Kept(1, (2,)))) == _Kept(1, (2,))


def test_an_object_that_holds_itself_has_a_text() -> None:
    box = OURS["Box"]()
    box.items = [box]
    assert "..." in repr(box)


@pytest.mark.parametrize(("name", "args", "named"), CALLS)
def test_objects_of_a_class_that_makes_many(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Its first calls and those of its compiled `__init__` set the same, and refuse the same."""
    ours, theirs = _classes(records.dataclass)[name], THEIRS[name]
    wanted = vars(theirs(*args, **named))
    for _ in range(2 * records._FEW_CALLS):
        assert vars(ours(*args, **named)) == wanted
    for wrong in ((*args, *range(9)), ()):
        unknown = {"unknown": 1} if wrong == () else {}
        with pytest.raises(TypeError) as told:
            theirs(*wrong, **unknown)
        for cls in (ours, _classes(records.dataclass)[name]):
            with pytest.raises(TypeError) as ours_told:
                cls(*wrong, **unknown)
            assert str(ours_told.value).partition("__init__")[2] == str(told.value).partition("__init__")[2]


def test_what_is_given_twice_or_not_at_all() -> None:
    for cls in (_classes(records.dataclass)["Point"], THEIRS["Point"]):
        with pytest.raises(TypeError, match="multiple values for argument 'x'"):
            cls(1, x=2)
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            cls(y=2)
