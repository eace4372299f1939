"""`graph-panel-products`: a matrix that is dequantised for the library is made a panel at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten import AtenOp, CallOp, Reference, TensorType
from ...dialects.sym import ONE, Expr, Ranges, SymbolAttr, SymbolDeclaration, bounds, const, symbol
from ...machines import CpuTarget, Target
from ...records import dataclass
from ..analysis.nests import element_bytes
from ..counters import counter
from ..remarks import remark
from ._binding_times import size_text
from ._dequantised import dequantised
from ._panels import PanelError, Recipe, recipe_of
from ._product_pass import ProductPass
from ._replacement import Origin, ReplacementBuilder, type_of

_MAP = "higher_order::map_impl"
_LEAST_COLUMNS = 64
_ROWS = "n"
"""The symbol of a body for a number of rows that is not known."""


@dataclass(frozen=True)
class PanelProducts(ProductPass):
    """Let a product whose matrix is made of less memory make panels of it, one at a time, in the same memory.

    level:         aten
    precondition:  behind `graph-multiply-quantised`, which takes products of few rows
    guarantee:     the same values: each column of the result is the same sum. A product of the library, on a CPU, of
                   any number of rows and a matrix that casts and arithmetic make of less memory column by column,
                   becomes a loop over panels of columns, each of about `CpuTarget.l2_bytes` times `panel`, or of as
                   many bytes as the other operand if that is more. Its body makes a panel and multiplies by it, and its
                   results are written where they belong in the whole one. So no more than a panel is in memory. Bodies
                   that are equal are one function.

        %0 = aten.t(%w) : !aten.tensor<2048x5632xi8, strides = [1, 2048]>
        %1 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<2048x5632xf32, strides = [1, 2048]>
        %2 = aten.mm(%x, %1) : !aten.tensor<64x5632xf32>
    becomes
        %0 = aten.view(%w, size = [22, 256, 2048]) : !aten.tensor<22x256x2048xi8>
        %1 = aten.call "higher_order::map_impl"(@panel_0, [%0], [%x])
             : !aten.tensor<22x64x256xf32, strides = [256, 5632, 1]>
        %2 = aten.permute(%1, dims = [1, 0, 2]) : !aten.tensor<64x22x256xf32>
        %3 = aten.view(%2, size = [64, 5632]) : !aten.tensor<64x5632xf32>
    with
        func.func private @panel_0(%w: !aten.tensor<256x2048xi8>, %x: T) -> !aten.tensor<64x256xf32> {
          %0 = aten.t(%w) : !aten.tensor<2048x256xi8, strides = [1, 2048]>
          %1 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<2048x256xf32, strides = [1, 2048]>
          %2 = aten.mm(%x, %1) : !aten.tensor<64x256xf32>
          func.return %2 : !aten.tensor<64x256xf32>
        }
    """

    name = "graph-panel-products"
    PRODUCTS: ClassVar[frozenset[str]] = frozenset({"aten.mm", "aten.addmm"})

    panel: int = 2
    """Memory of a panel, in second-level caches; 0: none are made."""

    @override
    def on_product(self, op: AtenOp, target: Target, ranges: Ranges) -> None:
        """Make panels for one product."""
        how = dequantised(op.operands[-1])
        if how is None or not isinstance(target, CpuTarget) or not self.panel:
            return
        most = max(self.panel * target.l2_bytes, _bytes(type_of(op.operands[-2])))
        if how.made < 2 * most:
            return
        try:
            recipe = recipe_of(op.operands[-1], 1)
            width = _width(op, most)
            product = _Product(op, recipe, width, ranges)
        except PanelError as error:
            remark("missed", self.name, op, f"its matrix is made as a whole, {size_text(how.made)}: {error}")
            return
        if counter(self.name):
            remark(
                "passed", self.name, op, f"panels of {width} columns: {size_text(how.made)} are not in memory at once"
            )
            product.replace()


def _bytes(type_: TensorType) -> int:
    """Memory of a tensor of known sizes; 0 for another."""
    sizes = [size.as_int() for size in type_.shape]
    return 0 if None in sizes else math.prod(map(int, filter(None, sizes))) * element_bytes(type_.element)


def _width(op: AtenOp, most: int) -> int:
    """Columns of a panel, of at most so many bytes if that leaves enough; if possible they divide the matrix."""
    matrix = type_of(op.operands[-1])
    depth, columns = (size.as_int() or 0 for size in matrix.shape)
    wanted = max(_LEAST_COLUMNS, most // max(1, depth * element_bytes(matrix.element)))
    divisors = (width for width in range(wanted, _LEAST_COLUMNS - 1, -1) if columns % width == 0)
    return next(divisors, wanted // _LEAST_COLUMNS * _LEAST_COLUMNS)


class _Product:
    """A product, and the loop that takes its place.

    given: what a body reads: values of which each run gets a part, with the dimension that is parted, then the others
    """

    def __init__(self, op: AtenOp, recipe: Recipe, width: int, ranges: Ranges) -> None:
        self.op, self.recipe, self.width, self.ranges = op, recipe, width, ranges
        self.result = type_of(op.results[0])
        self.columns = self.result.shape[1].as_int() or 0
        self.covered = self.columns // width * width
        if not self.result.is_contiguous:
            raise PanelError("its result is not row-major")
        self.parted = {leaf: dim for leaf in recipe.leaves if (dim := recipe.dims[leaf]) is not None}
        self.whole = [leaf for leaf in recipe.leaves if recipe.dims[leaf] is None]
        for operand in op.operands[:-1]:
            if operand is not op.operands[-2] and type_of(operand).shape[-1:] == (const(self.columns),):
                self.parted[operand] = len(type_of(operand).shape) - 1
            elif operand not in self.whole:
                self.whole.append(operand)
        if any(operand in self.parted for operand in op.operands[-2:-1]):
            raise PanelError("it multiplies by its own parts")
        self.given = [*self.parted, *self.whole]
        self.types = [self._type(value) for value in self.given]

    def _type(self, value: SSAValue) -> TensorType:
        """What a body gets of a value."""
        type_, dim = type_of(value), self.parted.get(value)
        shape = [const(self.width) if k == dim else self._size(size) for k, size in enumerate(type_.shape)]
        if any(stride.as_int() is None for stride in type_.strides):
            raise PanelError("strides of an operand are dynamic")
        return TensorType.get(tuple(shape), type_.element, type_.strides, type_.device)

    def _size(self, size: Expr) -> Expr:
        if size.as_int() is None and size != self.result.shape[0]:
            raise PanelError("an operand has dynamic sizes besides the number of rows")
        return size if size.as_int() is not None else symbol(_ROWS)

    def replace(self) -> None:
        """Put the loop in the place of the product."""
        aten = ReplacementBuilder(self.op, Origin(self.op.location, {}))
        made = self._loop(aten)
        if self.covered < self.columns:
            made = aten.cat((made, self._rest(aten)), dim=1, types=[self.result])
        made.name_hint = self.op.results[0].name_hint
        self.op.results[0].replace_all_uses_with(made)
        block = self.op.parent
        assert block is not None
        for dead in (self.op, *reversed(self.recipe.ops)):
            if all(result.first_use is None for result in dead.results):
                block.erase_op(dead)

    def _loop(self, aten: ReplacementBuilder) -> SSAValue:
        """The columns that whole panels make."""
        count, rows = self.covered // self.width, self.result.shape[0]
        parts = [
            _parts(aten, self._slice(aten, value, 0, self.covered), dim, self.width)
            for value, dim in self.parted.items()
        ]
        strides = (const(self.width), const(self.covered), ONE)
        type_ = TensorType.get(
            (const(count), rows, const(self.width)), self.result.element, strides, self.result.device
        )
        args = (Reference(self._function()), tuple(parts), tuple(self.whole))
        call = CallOp.of(_MAP, args, {}, [type_], self.op.location, pure=True)
        block = self.op.parent
        assert block is not None
        block.insert_op_before(call, self.op)
        columns = aten.permute(call.results[0], dims=(1, 0, 2))
        return aten.view(columns, size=(rows, self.covered))

    def _slice(self, aten: ReplacementBuilder, value: SSAValue, start: int, end: int) -> SSAValue:
        """Some columns of a value."""
        type_, dim = type_of(value), self.parted[value]
        if (start, end) == (0, self.columns):
            return value
        shape = (*type_.shape[:dim], const(end - start), *type_.shape[dim + 1 :])
        made = TensorType.get(shape, type_.element, type_.strides, type_.device)
        return aten.slice.Tensor(value, dim=dim, start=start, end=end, types=[made])

    def _rest(self, aten: ReplacementBuilder) -> SSAValue:
        """The columns behind the last whole panel, which are fewer."""
        values = {value: self._slice(aten, value, self.covered, self.columns) for value in self.parted}
        block = self.op.parent
        assert block is not None
        for op in self._product(values, self.columns - self.covered, self.result.shape[0]):
            block.insert_op_before(op, self.op)
        return values[self.op.results[0]]

    def _product(self, values: dict[SSAValue, SSAValue], width: int, rows: Expr) -> Iterator[Operation]:
        """What makes columns of the result of what `values` gives; they get into it."""
        yield from self.recipe.copy(values, width)
        named = {a.name: self.op.arg(a.name) for a in self.op.schema.arguments}
        named = {name: values.get(v, v) if isinstance(v, SSAValue) else v for name, v in named.items()}
        made = TensorType.get((rows, const(width)), self.result.element, None, self.result.device)
        product = type(self.op).build(named, [made], self.op.location)
        values[self.op.results[0]] = product.results[0]
        yield product

    def _function(self) -> str:
        """The name of the body, which the module gets unless it has an equal one."""
        block = Block(arg_types=self.types)
        values: dict[SSAValue, SSAValue] = dict(zip(self.given, block.args, strict=True))
        for op in self._product(values, self.width, self._size(self.result.shape[0])):
            block.add_op(op)
        result = values[self.op.results[0]]
        block.add_op(ReturnOp.create(operands=[result]))
        types = FunctionType.from_lists(self.types, [result.type])
        return self._enter(FuncOp("panel_0", types, Region(block), visibility="private"))

    def _enter(self, function: FuncOp) -> str:
        function.location = self.op.location
        function.attributes["symbols"] = ArrayAttr(self._symbols())
        outer = self.op.parent_op()
        module = None if outer is None else outer.parent
        assert module is not None and module.last_op is not None
        known = [op for op in module.ops if isinstance(op, FuncOp)]
        text = _body_text(function)
        for each in known:
            if each.sym_name.data.startswith("panel_") and _body_text(each) == text:
                return each.sym_name.data
        taken = {each.sym_name.data for each in known}
        name = next(name for k in range(len(taken) + 1) if (name := f"panel_{k}") not in taken)
        function.properties["sym_name"] = type(function.sym_name)(name)
        module.insert_op_after(function, module.last_op)
        return name

    def _symbols(self) -> Sequence[SymbolAttr]:
        size = self.result.shape[0]
        if size.as_int() is not None:
            return []
        low, high = bounds(size, self.ranges)
        place = self.given.index(self.op.operands[-2])
        return [SymbolAttr(SymbolDeclaration(_ROWS, arg=place, dim=0, min=low, max=high))]


def _parts(aten: ReplacementBuilder, value: SSAValue, dim: int, width: int) -> SSAValue:
    """A value with its parts as the first dimension."""
    type_ = type_of(value)
    size, stride = type_.shape[dim].as_int() or 0, type_.strides[dim]
    shape = (*type_.shape[:dim], const(size // width), const(width), *type_.shape[dim + 1 :])
    strides = (*type_.strides[:dim], stride * width, stride, *type_.strides[dim + 1 :])
    split = aten.view(value, size=shape, types=[TensorType.get(shape, type_.element, strides, type_.device)])
    return aten.permute(split, dims=(dim, *(k for k in range(len(shape)) if k != dim))) if dim else split


def _body_text(function: FuncOp) -> str:
    """What two functions have in common that differ in their names alone."""
    return str(function).partition("(")[2]
