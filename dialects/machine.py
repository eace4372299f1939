"""The attribute that says for which machines a module is compiled.

    builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp", cuda = "cuda:90">} { ... }

It names the description (`machines/`) of each type of torch device that the module's tensors lie on. Import sets it
from the devices that it meets, `--target` sets it for files, and passes ask it for a tensor's device. A module without
it is for the usual machine of each device of its functions (`machines.default_target`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from typing_extensions import override
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Attribute, Data, Dialect, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..errors import UserError
from ..machines import CpuTarget, GpuTarget, Target, default_target, is_described, target_named

#: the name of the module's attribute
TARGETS = "machine.targets"


@irdl_attr_definition
class TargetsAttr(Data[tuple[tuple[str, str], ...]]):
    """Targets by type of device, in alphabetical order: `#machine.targets<cpu = "cpp", cuda = "cuda:90">`.

    Verified: each name is that of a target, and the target is one for its type of device.
    """

    name = "machine.targets"

    @override
    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, str], ...]:
        def entry() -> tuple[str, str]:
            device = parser.parse_identifier()
            parser.parse_punctuation("=")
            name = parser.parse_str_literal()
            return device, name

        found = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry)
        if len({device for device, _ in found}) < len(found):
            parser.raise_error("a type of device is named twice")
        return tuple(sorted(found))

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f'{device} = "{name}"' for device, name in self.data))

    @override
    def verify(self) -> None:
        for device, name in self.data:
            try:
                target = target_named(name)
            except UserError as error:
                raise VerifyException(str(error)) from error
            if target.device != device:
                raise VerifyException(f"the target {name!r} is one of the device {target.device!r}, not {device!r}")

    @staticmethod
    def of(names: Mapping[str, str]) -> TargetsAttr:
        """The attribute from types of devices and names of targets. VerifyException for names that do not fit."""
        return TargetsAttr(tuple(sorted(names.items())))

    def target(self, device: str) -> Target:
        """The target of a torch device, "cuda:0".

        One that nothing compiles for, such as "meta", is taken for the main one: no kernel runs there.
        """
        name = _named(self.data, device)
        if name is not None:
            return target_named(name)
        return default_target(device) if is_described(device) else self.main

    @property
    def host(self) -> CpuTarget:
        """The target of kernels on the host's memory."""
        target = self.target("cpu")
        assert isinstance(target, CpuTarget)
        return target

    @property
    def main(self) -> Target:
        """The target of kernels of which nothing tells the device: the one that is not the host's, if one is named."""
        named = [target_named(name) for _, name in self.data]
        return next((each for each in named if not isinstance(each, CpuTarget)), self.host)

    @property
    def gpu(self) -> GpuTarget | None:
        """The GPU that the module is for, if one is named."""
        return self.main if isinstance(self.main, GpuTarget) else None


@lru_cache(maxsize=256)
def _named(names: tuple[tuple[str, str], ...], device: str) -> str | None:
    """The name of the target of a device. Asked for each nest, so that it is remembered."""
    type_ = device.partition(":")[0]
    return next((name for each, name in names if each == type_), None)


Machine = Dialect("machine", [], [TargetsAttr])


#: of a module of which nothing is known
USUAL = TargetsAttr(())


def targets_of(module: Operation) -> TargetsAttr:
    """The targets of a module. UserError for an attribute of another kind.

    A module that names none is for the usual machines of the devices that its functions take and return tensors on.
    """
    found: Attribute | None = module.attributes.get(TARGETS)
    if found is None:
        return _usual(module)
    if not isinstance(found, TargetsAttr):
        raise UserError(f"the module's {TARGETS} is {found}", f'write {TARGETS} = #machine.targets<cuda = "cuda:90">')
    return found


def _usual(module: Operation) -> TargetsAttr:
    from .aten.types import TensorType

    names: dict[str, str] = {}
    for op in module.regions[0].block.ops if module.regions else ():
        signature = op.properties.get("function_type")
        if isinstance(signature, FunctionType):
            types = (*signature.inputs.data, *signature.outputs.data)
            for device in {each.device for each in types if isinstance(each, TensorType)}:
                if is_described(device):
                    names[device.partition(":")[0]] = default_target(device).name
    return TargetsAttr.of(names)


def set_targets(module: ModuleOp, names: Iterable[str]) -> None:
    """Let a module name these targets, each for its device. UserError for a name that is not known."""
    found = [target_named(name) for name in names]
    module.attributes[TARGETS] = TargetsAttr.of({target.device: target.name for target in found})


def aim_at(module: ModuleOp, name: str) -> None:
    """Let a module name another target for its type of device; the others stay. UserError for an unknown name."""
    found = target_named(name)
    module.attributes[TARGETS] = TargetsAttr.of({**dict(targets_of(module).data), found.device: found.name})


def target_at(op: Operation, device: str) -> Target:
    """The target of a torch device in the module around an op."""
    above = op
    while (parent := above.parent_op()) is not None:
        above = parent
    return targets_of(above).target(device)


def target_of(value: SSAValue) -> Target:
    """The target of the device that a tensor of a module is on."""
    from .aten.types import TensorType

    owner = value.owner
    above = owner if isinstance(owner, Operation) else owner.parent_op()
    assert above is not None and isinstance(value.type, TensorType)
    return target_at(above, value.type.device)


__all__ = [
    "TARGETS", "USUAL", "Machine", "TargetsAttr", "aim_at", "set_targets", "target_at", "target_of", "targets_of",
]  # fmt: skip
