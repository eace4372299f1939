// RUN: inductile-opt %s --split-input-file --verify-each -p lower-aten-to-loop | filecheck %s

// A pointwise op is one nest; a size-1 dimension and a missing one are broadcast; low precision is widened.

func.func @add(%x: !aten.tensor<(s0)x4xf16>, %y: !aten.tensor<4xf16>, %z: !aten.tensor<(s0)x1xf16>) -> !aten.tensor<(s0)x4xf16> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %0 = aten.add.Tensor(%x, %y, alpha = 2) : !aten.tensor<(s0)x4xf16>
  %1 = aten.mul.Tensor(%0, %z) : !aten.tensor<(s0)x4xf16>
  func.return %1 : !aten.tensor<(s0)x4xf16>
}

// CHECK:       func.func @add
// CHECK-NEXT:    [[SUM:%.*]] = loop.generate (i0 in s0, i1 in 4) {
// CHECK-NEXT:      [[A:%.*]] = loop.load %x[i0, i1]
// CHECK-NEXT:      [[B:%.*]] = scalar.widen [[A]] : f16 to f32
// CHECK-NEXT:      [[C:%.*]] = loop.load %y[i1]
// CHECK-NEXT:      [[D:%.*]] = scalar.widen [[C]] : f16 to f32
// CHECK-NEXT:      [[E:%.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT:      [[F:%.*]] = arith.mulf [[D]], [[E]] : f32
// CHECK-NEXT:      [[G:%.*]] = arith.addf [[B]], [[F]] : f32
// CHECK-NEXT:      [[H:%.*]] = scalar.narrow [[G]] : f32 to f16
// CHECK-NEXT:      loop.yield [[H]]
// CHECK-NEXT:    } : !aten.tensor<(s0)x4xf16>
// CHECK-NEXT:    loop.generate (i0 in s0, i1 in 4) {
// CHECK-NEXT:      loop.load [[SUM]][i0, i1]
// CHECK:           loop.load %z[i0, 0]

// -----

// Softmax: a reduction is a nest whose body is a reduce; reduce axes are numbered through the function.

func.func @softmax(%x: !aten.tensor<8x16xf32>) -> !aten.tensor<8x16xf32> {
  %0 = aten._softmax(%x, dim = 1, half_to_float = false) : !aten.tensor<8x16xf32>
  func.return %0 : !aten.tensor<8x16xf32>
}

// CHECK:       func.func @softmax
// CHECK-NEXT:    [[MAX:%.*]] = loop.generate (i0 in 8) {
// CHECK-NEXT:      [[A:%.*]] = loop.reduce max (r0 in 16) {
// CHECK-NEXT:        [[B:%.*]] = loop.load %x[i0, r0]
// CHECK-NEXT:        loop.yield [[B]]
// CHECK-NEXT:      }
// CHECK-NEXT:      loop.yield [[A]]
// CHECK-NEXT:    } : !aten.tensor<8xf32>
// CHECK-NEXT:    [[EXP:%.*]] = loop.generate (i0 in 8, i1 in 16) {
// CHECK:           loop.load [[MAX]][i0]
// CHECK:           math.exp
// CHECK:         [[SUM:%.*]] = loop.generate (i0 in 8) {
// CHECK-NEXT:      loop.reduce sum (r1 in 16) {
// CHECK-NEXT:        loop.load [[EXP]][i0, r1]
// CHECK:         loop.generate (i0 in 8, i1 in 16) {
// CHECK:           [[TOTAL:%.*]] = loop.load [[SUM]][i0]
// CHECK-NEXT:      [[SHARE:%.*]] = arith.divf {{.*}}, [[TOTAL]]
// CHECK-NEXT:      arith.mulf {{.*}}, [[SHARE]]

// -----

// Views are index maps; a reshape touches only the dimensions that it splits or merges.

func.func @heads(%x: !aten.tensor<(s0)x128x768xf32>) -> !aten.tensor<(12*s0)x128x64xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
  %0 = aten.view(%x, size = [s0, 128, 12, 64]) : !aten.tensor<(s0)x128x12x64xf32>
  %1 = aten.permute(%0, dims = [0, 2, 1, 3]) : !aten.tensor<(s0)x12x128x64xf32, strides = [98304, 64, 768, 1]>
  %2 = aten.clone(%1) : !aten.tensor<(s0)x12x128x64xf32>
  %3 = aten.view(%2, size = [12*s0, 128, 64]) : !aten.tensor<(12*s0)x128x64xf32>
  func.return %3 : !aten.tensor<(12*s0)x128x64xf32>
}

// CHECK:       func.func @heads
// CHECK-NEXT:    loop.view %x[i0, i1, 64*i2 + i3] (i0 in s0, i1 in 128, i2 in 12, i3 in 64) :
// CHECK-NEXT:    loop.view {{.*}}[i0, i2, i1, i3] (i0 in s0, i1 in 12, i2 in 128, i3 in 64) :
// CHECK-SAME:      strides = [98304, 64, 768, 1]
// CHECK-NEXT:    loop.generate (i0 in s0, i1 in 12, i2 in 128, i3 in 64) {
// CHECK:         loop.view {{.*}}[i0 floordiv 12, i0 mod 12, i1, i2] (i0 in 12*s0, i1 in 128, i2 in 64)

// -----

// Integer division checks its divisor; the smallest integer by -1 does not trap.

func.func @divide(%x: !aten.tensor<4xi32>, %y: !aten.tensor<4xi32>) -> !aten.tensor<4xi32> {
  %0 = aten.floor_divide(%x, %y) : !aten.tensor<4xi32>
  %1 = aten.floor_divide.Scalar(%0, other = 3) : !aten.tensor<4xi32>
  func.return %1 : !aten.tensor<4xi32>
}

// CHECK:       func.func @divide
// CHECK:           loop.assert {{.*}}, "ZeroDivisionError" : RuntimeError
// CHECK:           scalar.floordivi
// CHECK:         loop.generate
// CHECK-NEXT:      loop.load
// CHECK-NEXT:      arith.constant 3 : i32
// CHECK-NEXT:      scalar.floordivi
// CHECK-NEXT:      loop.yield

// -----

// Reading by index, writing the pieces of a cat; an op without a lowering stays, with its operands replaced.

func.func @embed(%w: !aten.tensor<100x8xf32>, %i: !aten.tensor<5xi64>) -> !aten.tensor<10x10xf32> {
  %0 = aten.embedding(%w, %i) : !aten.tensor<5x8xf32>
  %1 = aten.cat([%0, %0]) : !aten.tensor<10x8xf32>
  %2 = aten.t(%1) : !aten.tensor<8x10xf32, strides = [1, 8]>
  %3 = aten.mm(%1, %2) : !aten.tensor<10x10xf32>
  func.return %3 : !aten.tensor<10x10xf32>
}

// CHECK:       func.func @embed
// CHECK-NEXT:    [[ROWS:%.*]] = loop.generate (i0 in 5, i1 in 8) {
// CHECK-NEXT:      loop.load %i[i0]
// CHECK:           loop.assert {{.*}}, "index out of range in self" : IndexError
// CHECK-NEXT:      loop.load %w[d0, i1] (d0 = {{.*}})
// CHECK:         [[EMPTY:%.*]] = loop.empty : !aten.tensor<10x8xf32>
// CHECK-NEXT:    [[FIRST:%.*]] = loop.scatter set (i0 in 5, i1 in 8) into [[EMPTY]][i0, i1] unique {
// CHECK:         [[CAT:%.*]] = loop.scatter set (i0 in 5, i1 in 8) into [[FIRST]][i0 + 5, i1] unique {
// CHECK:         [[T:%.*]] = loop.view [[CAT]][i1, i0]
// CHECK-NEXT:    aten.mm([[CAT]], [[T]])

// -----

// A scan of one long row is ATen's on a GPU, whose programs scan rows beside each other; not of halves, which ATen rounds
// in each step.

func.func @scans(
  %x: !aten.tensor<1x100000xf32, device = "cuda:0">, %h: !aten.tensor<100000xbf16, device = "cuda:0">,
  %y: !aten.tensor<2x100000xf32, device = "cuda:0">, %c: !aten.tensor<100000xf32>
) -> (
  !aten.tensor<1x100000xf32, device = "cuda:0">, !aten.tensor<100000xbf16, device = "cuda:0">,
  !aten.tensor<2x100000xf32, device = "cuda:0">, !aten.tensor<100000xf32>
) {
  %0 = aten.cumsum(%x, dim = 1) : !aten.tensor<1x100000xf32, device = "cuda:0">
  %1 = aten.cumsum(%h, dim = 0) : !aten.tensor<100000xbf16, device = "cuda:0">
  %2 = aten.cumsum(%y, dim = 1) : !aten.tensor<2x100000xf32, device = "cuda:0">
  %3 = aten.cumsum(%c, dim = 0) : !aten.tensor<100000xf32>
  func.return %0, %1, %2, %3 : !aten.tensor<1x100000xf32, device = "cuda:0">, !aten.tensor<100000xbf16, device = "cuda:0">, !aten.tensor<2x100000xf32, device = "cuda:0">, !aten.tensor<100000xf32>
}

// CHECK:       func.func @scans
// CHECK:         aten.cumsum(%x, dim = 1)
// CHECK:         loop.scan sum
// CHECK:         loop.scan sum
// CHECK:         loop.scan sum
