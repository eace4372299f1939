"""A question as a module: its text is parsed once, and whoever changes the module takes a copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from ...dialects.aten import AtenOp, TensorType
from ...dialects.context import new_context
from ...passes.analysis.functions import first_function
from ...passes.common.choices import Candidate, Question, mark, open_products
from ...passes.common.implementations import NEST
from ...passes.graph._joint import forward_results
from ...passes.graph._ways import number_of_way, take_way, ways_of
from ...passes.graph.choose_products import is_either, take
from ...passes.printing import module_text
from ...records import dataclass
from ..random_tensors import random_tensor
from ..reference.precision import actual_device, torch_dtype

_SEED = 0


@dataclass(frozen=True, eq=False)
class Asked:
    """A question and what its text says.

    module: the text, parsed; nobody changes it
    device: where the result of its function is
    """

    question: Question
    module: ModuleOp
    device: str

    @staticmethod
    def of(question: Question) -> Asked:
        """Parse a question."""
        module = Parser(new_context(), question.text).parse_module()
        outputs = first_function(module).function_type.outputs.data
        assert isinstance(outputs[0], TensorType)
        return Asked(question, module, outputs[0].device)

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The ways to compute it."""
        return self.question.candidates

    @property
    def is_trained(self) -> bool:
        """Whether the question is a joint function of forward and backward."""
        return forward_results(first_function(self.module)) is not None

    def text(self) -> str:
        """The module as text, however the question was spelled."""
        return module_text(self.module)

    def marked(self, candidate: Candidate) -> ModuleOp:
        """A copy of the module whose products a candidate is to compute."""
        copy = self.module.clone()
        second = candidate.implementation == NEST
        for op in [each for each in copy.walk() if is_either(each)]:
            take(op, second)
        function = first_function(copy)
        for number in map(number_of_way, ways_of(function.body.block.ops)):
            take_way(function.body.block, number, second)
        if self.is_trained:
            _return_no_zeros(function)
        for op in open_products(copy):
            mark(op, candidate, self.question.allow_tf32)
        return copy

    def inputs(self) -> list[torch.Tensor]:
        """Random tensors, of static sizes; the generators of the process stay as they are."""
        types = first_function(self.module).function_type.inputs.data
        return [_random(each) for each in types if isinstance(each, TensorType)]


def _return_no_zeros(function: FuncOp) -> None:
    """Leave out what the way that was dropped would add to gradients."""
    returned = function.body.block.last_op
    assert returned is not None
    kept = [v for v in returned.operands if not (isinstance(v.owner, AtenOp) and v.owner.target == "aten.full")]
    dropped = [v.owner for v in returned.operands if v not in kept]
    returned.operands = kept
    for op in dropped:
        if isinstance(op, AtenOp) and op.results[0].first_use is None:
            function.body.block.erase_op(op)
    function.update_function_type()


def _random(type_: TensorType) -> torch.Tensor:
    shape = tuple(int(str(size)) for size in type_.shape)
    strides = tuple(int(str(step)) for step in type_.strides)
    device = actual_device(type_.device)
    generator = torch.Generator(device).manual_seed(_SEED)
    return random_tensor(shape, strides, torch_dtype(type_.element), device, generator)
