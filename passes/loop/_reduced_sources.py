"""Last steps of rows: nests that belong to the kernel in which their sources are reduced."""

from __future__ import annotations

from typing import cast

from xdsl.ir import SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, ReduceOp
from ...dialects.sym import ONE, AxesAttr
from ..analysis.sizes import Sizes
from ._accesses import access_of, loads_in, map_of
from ._cost import body_cost
from ._live_bytes import bytes_together
from ._splice import Site


def is_last_step_of_rows(producer: GenerateOp, site: Site, estimates: Sizes) -> bool:
    """Whether a producer that a reduction reads needs no less memory for its sources than for its results, or gathers.

    The sources are results of earlier reductions, read at the producer's own points: a loss of each row is made of the
    row's maximum and sum. All of them fuse, and leave nothing but the producer's results in memory. The reduction over
    these has to wait for all rows: computed there, the producer would leave its sources in memory, and its work, with
    what it gathers, to the few programs that run then. Where the sources are needed in memory anyway, what is left is
    the wait for elements that are looked up far apart: it is spread over the programs of the rows.
    """
    if type(site.block.parent_op()) is not ReduceOp:
        return False
    loads = loads_in(producer)
    found = {load.operands[0] for load in loads if _is_in_place(load, producer)}
    reduced = [value for value in found if _is_reduced(value)]
    rows = [value for value in reduced if _is_for_loads(value)]
    if rows and bytes_together(rows, estimates) >= bytes_together(producer.results, estimates):
        return True
    return len(rows) < len(reduced) and any(access_of(load).dynamic for load in loads)


def _is_in_place(load: LoadOp, producer: GenerateOp) -> bool:
    """Whether a load reads one element of its source for each point, and each once."""
    axes = {name for name, _ in cast(AxesAttr, producer.properties["axes"]).data}
    access = access_of(load)
    exprs = [
        e
        for e, size in zip(map_of(load).data, cast(TensorType, access.source.type).shape, strict=True)
        if size is not ONE
    ]
    names = [e.as_atom.name for e in exprs if e.as_atom is not None and e.as_atom.kind == "symbol"]
    return not access.dynamic and access.mask is None and len(names) == len(exprs) and axes == set(names)


def _is_reduced(value: SSAValue) -> bool:
    """Whether reductions made a value."""
    return type(value.owner) is GenerateOp and body_cost(value.owner).has_reduce


def _is_for_loads(value: SSAValue) -> bool:
    """Whether nothing uses a value that must find it in memory."""
    return all(type(use.operation) is LoadOp for use in value.uses)
