"""What the passes share that say who computes a product."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...dialects.aten import AtenOp
from ...dialects.machine import target_at
from ...dialects.raw import ops_of
from ...dialects.sym import Expr, Ranges, bounds
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..common.implementations import IMPLEMENTATION
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._replacement import type_of


@dataclass(frozen=True)
class ProductPass(AtenPass):
    """A pass that calls `on_product` for each op of `PRODUCTS` whose implementation nobody has chosen."""

    PRODUCTS: ClassVar[frozenset[str]]

    fallback_by_default: bool = False
    """Leave every ATen op to ATen."""

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        if self.fallback_by_default:
            return
        self.prepare(block)
        ops = [each for each in ops_of(block) if isinstance(each, AtenOp) and each.target in self.PRODUCTS]
        products = [each for each in ops if IMPLEMENTATION not in each.attributes]
        ranges = symbol_ranges(function) if products else Ranges()
        for product in products:
            self.on_product(product, target_at(product, type_of(product.results[0]).device), ranges)

    def prepare(self, block: Block) -> None:
        """What is done with a function first."""

    def on_product(self, op: AtenOp, target: Any, ranges: Ranges) -> None:
        """Decide for one product, which runs on a target."""
        raise NotImplementedError

    def mark(self, op: AtenOp, implementation: str, text: str) -> bool:
        """Say who computes a product, if the counter lets; whether it does."""
        if not counter(self.name):
            return False
        op.attributes[IMPLEMENTATION] = StringAttr(implementation)
        remark("passed", self.name, op, text)
        return True


def at_most(size: Expr, most: int, ranges: Ranges) -> bool:
    """Whether a size is certainly no larger than a number."""
    _, high = bounds(size, ranges)
    return high is not None and high <= most
