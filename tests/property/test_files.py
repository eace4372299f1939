"""A few hundred mutated files through the tools; `fuzz_files.py` runs thousands, also through C++."""

from __future__ import annotations

import pytest

from . import fuzz_files


@pytest.mark.parametrize("block", range(6))
def test_no_file_crashes_a_tool(block: int) -> None:
    for seed in range(50 * block, 50 * (block + 1)):
        _, fault = fuzz_files.check(fuzz_files.mutation(seed, cpp=False), cpp=False)
        assert fault is None, f"seed {seed}: {fault}"


#: what mutations found -> a file like it
FOUND = {
    "a scatter in place beside a view of the same input": """
      func.func @elsewhere(%x: !aten.tensor<3x8x4xf32>, %v: !aten.tensor<4xf32>) -> !aten.tensor<3x8x4xf32> {
        %l = loop.view %x[1, i0, i1] (i0 in 8, i1 in 4) : !aten.tensor<8x4xf32>
        %u = loop.scatter set (i0 in 1, i1 in 4) into %l[5, i1] unique in_place {
          %a = loop.load %v[i1]
          loop.yield %a
        } : !aten.tensor<8x4xf32>
        %r = loop.scatter set (i0 in 8, i1 in 4) into %x[2, i0, i1] unique {
          %b = loop.load %u[i0, i1]
          loop.yield %b
        } : !aten.tensor<3x8x4xf32>
        func.return %r : !aten.tensor<3x8x4xf32>
      }""",
    "more copies of a body than memory has room for": """
      kernel.func @unroll(%x: !kernel.buffer<f32, s0>) symbols (s0) {
        kernel.for i0 in 0 to s0 {
          %v = kernel.load %x[i0]
          kernel.store %v, %x[i0]
          kernel.yield
        }
        kernel.yield
      }
      transform.sequence {
        %i = transform.match kernel "unroll"
        %b = transform.unroll %i factor 4611686018427387904
      }""",
    "a loop whose end is negative, in rows": """
      kernel.func @rows(%v: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 65536>) {
        kernel.for i0 in 0 to 1024 {
          kernel.for i1 in 0 to -3 {
            %a = kernel.load %v[i1]
            %s = math.sqrt %a : f32
            kernel.store %s, %y[64*i0 + i1]
            kernel.yield
          }
          kernel.yield
        }
        kernel.yield
      }""",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_was_found(text: str) -> None:
    _, fault = fuzz_files.check(f"builtin.module {{ {text} }}", cpp=False)
    assert fault is None
