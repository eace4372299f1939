"""Last steps of rows: nests that belong to the kernel in which their sources are reduced."""

from __future__ import annotations

from typing import cast

from xdsl.ir import SSAValue

from ...dialects.loop import GenerateOp, LoadOp, ReduceOp
from ...dialects.sym import AxesAttr
from ..common.estimates import Estimates
from ._accesses import access_of, loads_in, map_of
from ._cost import body_cost
from ._live_bytes import bytes_of
from ._splice import Site


def is_last_step_of_rows(producer: GenerateOp, site: Site, estimates: Estimates) -> bool:
    """Whether a producer that a reduction reads needs no less memory for its sources than for its results.

    The sources are results of earlier reductions, read at the producer's own points: a loss of each row is made of the
    row's maximum and sum. All of them fuse, and leave nothing but the producer's results in memory. The reduction over
    these has to wait for all rows: computed there, the producer would leave its sources in memory, and its work, with
    what it gathers, to the few programs that run then.
    """
    if type(site.block.parent_op()) is not ReduceOp:
        return False
    rows = {load.operands[0] for load in loads_in(producer) if _is_in_place(load, producer)}
    rows = [value for value in rows if _is_reduced_for_loads(value)]
    return bool(rows) and bytes_of(rows, estimates) >= bytes_of(producer.results, estimates)


def _is_in_place(load: LoadOp, producer: GenerateOp) -> bool:
    """Whether a load reads one element of its source for each point, and each once."""
    axes = {name for name, _ in cast(AxesAttr, producer.properties["axes"]).data}
    access = access_of(load)
    names = [e.as_atom.name for e in map_of(load).data if e.as_atom is not None and e.as_atom.kind == "symbol"]
    return not access.dynamic and access.mask is None and len(names) == len(map_of(load).data) and axes == set(names)


def _is_reduced_for_loads(value: SSAValue) -> bool:
    """Whether reductions made a value, and nothing that must find it in memory uses it."""
    owner = value.owner
    return (
        type(owner) is GenerateOp
        and all(type(use.operation) is LoadOp for use in value.uses)
        and body_cost(owner).has_reduce
    )
