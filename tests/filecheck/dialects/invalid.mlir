// RUN: inductile-opt %s --split-input-file --verify-diagnostics
// Every verifier says what is wrong.

func.func @rank(%x: !aten.tensor<4x3xf32>) {
  %y = loop.generate (i0 in 4) {
    // expected-error @unknown {{1 indices for a tensor of 2 dimensions}}
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<4xf32>
  func.return
}
// -----
func.func @shape(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{do not span a result of type}}
  %y = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<5xf32>
  func.return
}
// -----
func.func @element(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{yields f32 into a tensor of f64}}
  %y = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<4xf64>
  func.return
}
// -----
func.func @monoid(%x: !aten.tensor<4xf32>) {
  %y = loop.generate () {
    // expected-error @unknown {{unknown monoid maxx}}
    %r = loop.reduce maxx (r0 in 4) {
      %v = loop.load %x[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32>
  func.return
}
// -----
func.func @unordered(%x: !aten.tensor<4xcomplex<f32>>) {
  %y = loop.generate () {
    // expected-error @unknown {{max take number, the body yields complex<f32>}}
    %r = loop.reduce max (r0 in 4) {
      %v = loop.load %x[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<complex<f32>>
  func.return
}
// -----
func.func @place(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{sum, argmax take number, number, integer, the body yields f32}}
  %s, %m, %i = loop.scan [sum, argmax] (i0 in 4) along i0 {
    %v = loop.load %x[i0]
    loop.yield %v, %v, %v
  } : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>
  func.return
}
// -----
// An inner value may be read only at the point of its producer.
func.func @inner(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{not at the point of its producer}}
  %y = loop.fusion (a0 in 4) {
    %a = loop.generate (i0 in 4) on (a0) {
      %v = loop.load %x[i0]
      loop.yield %v
    } : !aten.tensor<4xf32>
    %b = loop.generate (i0 in 4) on (a0) {
      %v = loop.load %a[-i0 + 3]
      loop.yield %v
    } : !aten.tensor<4xf32>
    loop.yield %b
  } : !aten.tensor<4xf32>
  func.return
}
// -----
func.func @placement(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{cannot run on a0}}
  %y = loop.fusion (a0 in 5) {
    %a = loop.generate (i0 in 4) on (a0) {
      %v = loop.load %x[i0]
      loop.yield %v
    } : !aten.tensor<4xf32>
    loop.yield %a
  } : !aten.tensor<4xf32>
  func.return
}
// -----
func.func @devices(%x: !aten.tensor<f32>, %g: !aten.tensor<f32, device = "cuda:0">) {
  // expected-error @unknown {{results on several devices: cpu, cuda:0}}
  %y, %z = loop.fusion () {
    %a = loop.generate () {
      %v = loop.load %x[]
      loop.yield %v
    } : !aten.tensor<f32>
    %b = loop.generate () {
      %v = loop.load %g[]
      loop.yield %v
    } : !aten.tensor<f32, device = "cuda:0">
    loop.yield %a, %b
  } : !aten.tensor<f32>, !aten.tensor<f32, device = "cuda:0">
  func.return
}
// -----
kernel.func @mapping(%x: !kernel.buffer<f32, 4>) {
  // expected-error @unknown {{maps axis i0 by sideways}}
  kernel.for i0 in 0 to 4 map sideways {
    kernel.yield
  }
  kernel.yield
}
// -----
kernel.func @unrolled(%x: !kernel.buffer<f32, 4>) {
  // expected-error @unknown {{axis i0 is unrolled: 2 iterations or more of a vector or serial loop}}
  kernel.for i0 in 0 to 4 map grid unroll 2 {
    kernel.yield
  }
  kernel.yield
}
// -----
kernel.func @types(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f64, 4>) {
  kernel.for i0 in 0 to 4 {
    %v = kernel.load %x[i0]
    // expected-error @unknown {{stores f32 into a buffer of f64}}
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// -----
func.func @undefined() {
  // expected-error @below {{used before it is defined}}
  %y = loop.view %x[i0] (i0 in 4) : !aten.tensor<4xf32>
  func.return
}
// -----
host.func @caller(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  // expected-error @unknown {{there is no host.func @nowhere to call}}
  %y = host.call @nowhere(%x) : !aten.tensor<4xf32>
  host.return %y
}
// -----
host.func @caller(%x: !aten.tensor<4xf32>) -> (!aten.tensor<5xf32>) symbols [] {
  // expected-error @unknown {{@callee is of type (!aten.tensor<4xf32>) -> !aten.tensor<4xf32>, the call of}}
  %y = host.call @callee(%x) : !aten.tensor<5xf32>
  host.return %y
}
host.func @callee(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  host.return %x
}
// -----
// expected-error @below {{is given arguments that it does not have; there are 1}}
host.func @given(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] given [1] {
  host.return %x
}
// -----
// expected-error @unknown {{result 0 is marked any_strides and has no strides: it is index}}
func.func @strides(%n: index) -> (index {any_strides}) {
  func.return %n : index
}
// -----
// expected-error @unknown {{any_strides of result 0 has no value, and is 1 : i64}}
func.func @strides(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32> {any_strides = 1 : i64}) {
  func.return %x : !aten.tensor<4xf32>
}
// -----
// expected-error @unknown {{result 0 is marked any_strides, and calls of the function rely on its type}}
func.func private @strides(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32> {any_strides}) {
  func.return %x : !aten.tensor<4xf32>
}
// -----
func.func @places(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<1xf32> {
  %y = loop.fusion (a0 in 1 | a1 in 4, a2 in 6) {
    %s = loop.generate (i0 in 1) on (a0) {
      // expected-error @below {{on names 1 fusion axes for 2 axes}}
      %t = loop.reduce sum (r0 in 4, r1 in 6) on (a1) {
        %v = loop.load %x[r0, r1]
        loop.yield %v
      }
      loop.yield %t
    } : !aten.tensor<1xf32>
    loop.yield %s
  } : !aten.tensor<1xf32>
  func.return %y : !aten.tensor<1xf32>
}
// -----
func.func @negative(%x: !aten.tensor<8x4xf32>, %y: !aten.tensor<4xf32>) -> !aten.tensor<8x4xf32> {
  // expected-error @unknown {{the axis i0 has the negative size -1}}
  %t = loop.scatter add (i0 in -1, i1 in 4) into %x[5, i1] {
    %v = loop.load %y[i1]
    loop.yield %v
  } : !aten.tensor<8x4xf32>
  func.return %t : !aten.tensor<8x4xf32>
}
// -----
func.func @mask(%x: !aten.tensor<10xf32>, %i: !aten.tensor<5xi64>, %k: !aten.tensor<5xi1>) -> !aten.tensor<10xf32> {
  // expected-error @unknown {{the mask that a scatter yields is an i1, not i64}}
  %s = loop.scatter set (i0 in 5) into %x[d0] masked {
    %j = loop.load %i[i0]
    %m = loop.load %k[i0]
    %c = arith.constant 1.0 : f32
    loop.yield %c, %m, %j
  } : !aten.tensor<10xf32>
  func.return %s : !aten.tensor<10xf32>
}
// -----
host.func @copies(%x: !aten.tensor<4xf32>, %y: !aten.tensor<5xf32>) -> (!aten.tensor<5xf32>) {
  // expected-error @unknown {{copies 4 elements to 5 in dimension 0}}
  host.copy %x to %y
  host.return %y
}
// -----
host.func @copies_symbols(%x: !aten.tensor<(s0)xf32>, %y: !aten.tensor<(s0 + 1)xf32>) -> (!aten.tensor<(s0 + 1)xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  // expected-error @unknown {{copies s0 elements to s0 + 1 in dimension 0}}
  host.copy %x to %y
  host.return %y
}
// -----
host.func @copies_rank(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4x4xf32>) -> (!aten.tensor<4x4xf32>) {
  // expected-error @unknown {{copies 1 dimensions to 2}}
  host.copy %x to %y
  host.return %y
}
// -----
func.func @copied(%x: !aten.tensor<4x3xf32>, %y: !aten.tensor<5xf32>) {
  // expected-error @unknown {{what is copied of 5 does not broadcast to 4x3}}
  %c = aten.copy_(%x, %y) : !aten.tensor<4x3xf32>
  func.return
}

// -----

kernel.func @k(%x: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 4 {
    // expected-error @below {{the block has no other half of this access of two places}}
    %v = kernel.load even %x[2*i0]
    kernel.yield
  }
  kernel.yield
}

// -----

kernel.func @k(%x: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 4 {
    // expected-error @below {{change places with an access between them that may meet them}}
    %v = kernel.load even %x[2*i0]
    kernel.store %v, %x[2*i0 + 1]
    %w = kernel.load odd %x[2*i0 + 1]
    kernel.yield
  }
  kernel.yield
}

// -----

kernel.func @k() {
  %row = kernel.local : !kernel.buffer<f32, 8, local>
  // expected-error @below {{a local buffer lies in no cache that takes hints}}
  %v = kernel.load evict_last %row[0]
  kernel.yield
}

// -----

kernel.func @k(%i: !kernel.buffer<i64, 1>) {
  %j = kernel.load %i[0]
  // expected-error @below {{registers, which have no places that a dynamic index finds}}
  %row = kernel.local tile : !kernel.buffer<f32, 8, local>
  %v = kernel.load %row[d0] (d0 = %j)
  kernel.yield
}

// -----

kernel.func @k() {
  // expected-error @below {{has the intrinsic turn; known: transpose}}
  kernel.for i0 in 0 to 4 map serial intrinsic turn {
    kernel.yield
  }
  kernel.yield
}

// -----

func.func @left_out(%g: !aten.tensor<2x8x32xf32>, %x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<8xf32> {
  // expected-error @below {{result 2 is left out by output_mask, and its type is not none}}
  %0, %1, %2 = aten.convolution_backward(%g, %x, %w, bias_sizes = [8], stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8, output_mask = [true, true, false]) : !aten.tensor<2x8x32xf32>, !aten.tensor<8x1x3xf32>, !aten.tensor<8xf32>
  func.return %2 : !aten.tensor<8xf32>
}

// -----

func.func @windows(%x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<2x8x32xf32> {
  // expected-error @below {{padding has 2 numbers for 1 dimensions}}
  %y = aten.convolution(%x, %w, stride = [1], padding = [1, 1], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32>
  func.return %y : !aten.tensor<2x8x32xf32>
}

// -----

func.func @steps(%x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<2x8x32xf32> {
  // expected-error @below {{stride is 0, which is less than 1}}
  %y = aten.convolution(%x, %w, stride = [0], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32>
  func.return %y : !aten.tensor<2x8x32xf32>
}

// -----

func.func @places(%x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<2x8x32xf32> {
  // expected-error @below {{result 0 is 2x8x30, and not 2x8x32}}
  %y = aten.convolution(%x, %w, stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32>
  func.return %y : !aten.tensor<2x8x32xf32>
}

// -----

kernel.func @depth(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) {
  // expected-error @below {{maps axis i0 by matrix, which only a reduction's axis can be}}
  kernel.for i0 in 0 to 64 map matrix tile 16 {
    kernel.yield
  }
  kernel.yield
}

// -----

kernel.func @step(%x: !kernel.buffer<f32, 64>) {
  // expected-error @below {{maps axis i0 by matrix tile 24: a power of two, at least 16}}
  %s = kernel.reduce sum i0 in 0 to 64 map matrix tile 24 {
    %v = kernel.load %x[i0]
    %p = arith.mulf %v, %v : f32
    kernel.yield %p
  }
  kernel.yield
}

// -----

kernel.func @rows(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 map grid tile 16 swizzle 2 {
    // expected-error @below {{maps axis i1 by matrix, but each factor varies along one tiled axis, another one each}}
    %s = kernel.reduce sum i1 in 0 to 64 map matrix tile 16 {
      %v = kernel.load %x[64*i0 + i1]
      %p = arith.mulf %v, %v : f32
      kernel.yield %p
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// -----

kernel.func @types(%x: !kernel.buffer<f64, 4096>, %w: !kernel.buffer<f64, 4096>, %y: !kernel.buffer<f64, 4096>) {
  kernel.for i0 in 0 to 64 map grid tile 16 {
    kernel.for i1 in 0 to 64 map grid tile 16 {
      // expected-error @below {{matrix units multiply numbers of one type}}
      %s = kernel.reduce sum i2 in 0 to 64 map matrix tile 16 {
        %v = kernel.load %x[64*i0 + i2]
        %w0 = kernel.load %w[64*i1 + i2]
        %p = arith.mulf %v, %w0 : f64
        kernel.yield %p
      }
      kernel.store %s, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// -----

kernel.func @difference(%x: !kernel.buffer<f32, 4096>, %w: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 map grid tile 16 {
    kernel.for i1 in 0 to 64 map grid tile 16 {
      // expected-error @below {{maps axis i2 by matrix, but it adds what is no product}}
      %s = kernel.reduce sum i2 in 0 to 64 map matrix tile 16 {
        %v = kernel.load %x[64*i0 + i2]
        %w0 = kernel.load %w[64*i1 + i2]
        %p = arith.subf %v, %w0 : f32
        kernel.yield %p
      }
      kernel.store %s, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// -----

// expected-error @below {{a kernel has 1 stage or more, not 0}}
kernel.func @stages(%x: !kernel.buffer<f32, 64>) target "cuda:90" num_warps 4 num_stages 0 {
  kernel.yield
}

// -----

kernel.func @swizzle(%x: !kernel.buffer<f32, 64>) {
  // expected-error @below {{axis i0 is swizzled: by 2 tiles or more of a grid axis}}
  kernel.for i0 in 0 to 64 map grid tile 16 swizzle 1 {
    kernel.yield
  }
  kernel.yield
}
// -----

kernel.func @descending(%x: !kernel.buffer<f32, 64>) {
  // expected-error @below {{axis i0 is descending, and on no grid}}
  kernel.for i0 in 0 to 64 descending {
    kernel.yield
  }
  kernel.yield
}

// -----

kernel.func @goes_on(%x: !kernel.buffer<f32, 64>) {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{kernel.reduce sum has init, which is for custom monoids, or of another type}}
  %s = kernel.reduce sum init(%zero) i0 in 0 to 64 {
    %a = kernel.load %x[i0]
    kernel.yield %a
  }
  kernel.yield
}
// -----
// expected-error @unknown {{place 0 is in two pools, at two offsets or of two types}}
host.func @two_places(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) {
  %pool = host.empty : !aten.tensor<64xui8>
  %a = host.empty in %pool at 0 place 0 : !aten.tensor<4xf32>
  %b = host.empty in %pool at 16 place 0 : !aten.tensor<4xf32>
  %c = aten.add.Tensor(%a, %b) : !aten.tensor<4xf32>
  host.return %c
}
// -----
// expected-error @unknown {{place 0 is for planned memory and views of it, not for other host.view}}
host.func @no_place(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) {
  %v = host.view %x offset 0 place 0 : !aten.tensor<4xf32>
  %c = aten.relu(%v) : !aten.tensor<4xf32>
  host.return %c
}
// -----
// expected-error @unknown {{aten.relu uses %a, whose place ended with its pool}}
host.func @ended(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) {
  %pool = host.empty : !aten.tensor<64xui8>
  %a = host.empty in %pool at 0 place 0 : !aten.tensor<4xf32>
  host.free %pool
  %c = aten.relu(%a) : !aten.tensor<4xf32>
  host.return %c
}
// -----
func.func @masked_sum(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{a scatter from_zero adds what it yields, without a mask and dynamic indices}}
  %s = loop.scatter set (i0 in 8) into %x[i0 floordiv 2] from_zero {
    %v = arith.constant 1.0 : f32
    loop.yield %v
  } : !aten.tensor<4xf32>
  func.return
}
// -----
func.func @diagonal_sum(%x: !aten.tensor<4x4xf32>) {
  // expected-error @unknown {{each index of a scatter from_zero is an axis of its own, or the quotient of one}}
  %s = loop.scatter add (i0 in 4) into %x[i0, i0] from_zero {
    %v = arith.constant 1.0 : f32
    loop.yield %v
  } : !aten.tensor<4x4xf32>
  func.return
}
// -----
func.func @two_sums(%x: !aten.tensor<4xf32>, %y: !aten.tensor<2xf32>) {
  // expected-error @unknown {{scatters from_zero of one fusion sum over different axes or parts of them}}
  %f, %g = loop.fusion (a0 in 8) {
    %s = loop.scatter add (i0 in 8) into %x[i0 floordiv 2] from_zero on (a0) {
      %v = arith.constant 1.0 : f32
      loop.yield %v
    } : !aten.tensor<4xf32>
    %t = loop.scatter add (i0 in 8) into %y[i0 floordiv 4] from_zero on (a0) {
      %v = arith.constant 1.0 : f32
      loop.yield %v
    } : !aten.tensor<2xf32>
    loop.yield %s, %t
  } : !aten.tensor<4xf32>, !aten.tensor<2xf32>
  func.return
}
// -----
func.func @serial_sum(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{a scatter from_zero sums over an axis that is not parallel}}
  %f = loop.fusion (| a0 in 8) {
    %s = loop.scatter add (i0 in 8) into %x[i0 floordiv 2] from_zero on (a0) {
      %v = arith.constant 1.0 : f32
      loop.yield %v
    } : !aten.tensor<4xf32>
    loop.yield %s
  } : !aten.tensor<4xf32>
  func.return
}
// -----
func.func @integer_sum(%x: !aten.tensor<4xi64>) {
  // expected-error @unknown {{a scatter from_zero adds floats, not i64}}
  %s = loop.scatter add (i0 in 8) into %x[i0 floordiv 2] from_zero {
    %v = loop.index i0
    loop.yield %v
  } : !aten.tensor<4xi64>
  func.return
}
// -----
kernel.func @within(%x: !kernel.buffer<f32, 64>) {
  %first = kernel.index 2
  %last = kernel.index 4
  // expected-error @below {{axis i0 is within two places, and mapped by matrix or vector}}
  %s = kernel.reduce sum i0 in 0 to 64 within %first, %last {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  kernel.store %s, %x[0]
  kernel.yield
}
// -----
kernel.func @box(%x: !kernel.buffer<f16, 4096>, %w: !kernel.buffer<f16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 map grid tile 16 {
    kernel.for i1 in 0 to 64 map grid tile 16 {
      // expected-error @below {{loads a box for axis i2, but its elements do not lie side by side along one axis}}
      %s = kernel.reduce sum i2 in 0 to 64 map matrix tile 16 {
        %a = kernel.load box 32 %x[64*i0 + i2]
        %b = kernel.load %w[64*i1 + i2]
        %c = scalar.widen %a : f16 to f32
        %d = scalar.widen %b : f16 to f32
        %p = arith.mulf %c, %d : f32
        kernel.yield %p
      }
      kernel.store %s, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// -----
// expected-error @below {{makes 2 descriptors of boxes, at least 1, and its last buffer has bytes for them}}
kernel.func @descriptors(%x: !kernel.buffer<f32, 64>) boxes 2 {
  kernel.yield
}
// -----
kernel.func @box_elsewhere(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 map grid tile 16 {
    // expected-error @below {{loads a box, but it is no factor of a product on matrix units}}
    %a = kernel.load box 64 %x[64*i0]
    kernel.store %a, %y[i0]
    kernel.yield
  }
  kernel.yield
}
