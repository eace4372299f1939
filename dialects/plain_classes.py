"""Classes of IR whose `isinstance` is Python's own.

Attributes, ops and values of xDSL 0.75 derive from abstract classes. For these `isinstance` is a call of Python, and a
class that they have not met costs a walk over all subclasses, some hundreds: a sixteenth of a compile. Nothing
registers a virtual subclass of them, which is all that an abstract class has over others here, so that the answers
stay the same, for everybody in the process. In the same way values and ops are equal to themselves alone, which xDSL
spells as functions of Python, and every object is anyway.
"""

from __future__ import annotations

from abc import ABCMeta

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, Use
from xdsl.irdl import IRDLOperation


class PlainMeta(ABCMeta):
    """The class of classes that are asked for real subclasses alone. Those that derive from them are of it, too."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def make_plain(*roots: type) -> None:
    """Let these classes and all that derive from them be such classes."""
    waiting = list(roots)
    while waiting:
        cls = waiting.pop()
        if type(cls) is ABCMeta:
            cls.__class__ = PlainMeta
        waiting += cls.__subclasses__()


def equal_by_identity(*classes: type) -> None:
    """Let these classes, whose objects are equal to themselves alone, say so as every class of Python does."""
    for cls in classes:
        setattr(cls, "__eq__", object.__eq__)  # noqa: B010 - to types these are functions of one class alone
        setattr(cls, "__hash__", object.__hash__)  # noqa: B010


make_plain(Attribute, Operation, SSAValue, Block, Region)
equal_by_identity(Use, SSAValue, Operation, IRDLOperation, Block, Region)
