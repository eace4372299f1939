// RUN: inductile-opt %s --split-input-file --verify-each -p host-reuse | filecheck %s

// The second kernel writes over its input, at the same place and later than it reads; so does the third, row by row.
// The first must not: its input is an argument. The last one does: its input is returned too, so it may not.

kernel.func @exp(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @tanh(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.tanh %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @center(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 4 {
    %m = kernel.reduce max i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = arith.subf %v, %m : f32
      kernel.store %w, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @sin(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.sin %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @chain(%x: !aten.tensor<32xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<32xf32>) symbols [] {
  %a = host.empty : !aten.tensor<32xf32>
  host.launch @exp(%x, %a)
  %b = host.empty : !aten.tensor<32xf32>
  host.launch @tanh(%a, %b)
  %c = host.empty : !aten.tensor<32xf32>
  host.launch @center(%b, %c)
  %d = host.empty : !aten.tensor<32xf32>
  host.launch @sin(%c, %d)
  host.return %c, %d
}

// CHECK-LABEL: kernel.func @exp
// CHECK-NEXT: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: %v = kernel.load %x[i0]
// CHECK-NEXT: %w = math.exp %v : f32
// CHECK-NEXT: kernel.store %w, %y[i0]
// CHECK-LABEL: kernel.func @tanh(%y: !kernel.buffer<f32, 32>) {
// CHECK-LABEL: kernel.func @center(%y: !kernel.buffer<f32, 32>) {
// CHECK-LABEL: kernel.func @sin
// CHECK-NEXT: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: %v = kernel.load %x[i0]
// CHECK-NEXT: %w = math.sin %v : f32
// CHECK-NEXT: kernel.store %w, %y[i0]
// CHECK-LABEL: host.func @chain
// CHECK: host.launch @tanh(%a)
// CHECK-NEXT: host.launch @center(%a)
// CHECK-NEXT: %d = host.empty : !aten.tensor<32xf32>
// CHECK: host.return %a, %d

// -----

// Not in place: a reversed read, a row read behind the write, one launch of two whose input lives on. Then allocations
// take over what died, as a view when the type differs, but never what is returned or still has a view.

kernel.func @reverse(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[-i0 + 31]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @late(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %c = arith.constant 1.0 : f32
    kernel.store %c, %y[i0]
    %v = kernel.load %x[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @negate(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = arith.negf %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @take_over(%x: !aten.tensor<32xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<8xf32>, !aten.tensor<4x8xf32>) symbols [] {
  %a = host.empty : !aten.tensor<32xf32>
  host.launch @reverse(%x, %a)
  %b = host.empty : !aten.tensor<32xf32>
  host.launch @reverse(%a, %b)
  %c = host.empty : !aten.tensor<4x8xf32>
  host.launch @reverse(%b, %c)
  %d = host.empty : !aten.tensor<32xf32>
  host.launch @negate(%c, %d)
  %v = host.view %d offset 8 : !aten.tensor<8xf32>
  %e = host.empty : !aten.tensor<32xf32>
  host.launch @negate(%b, %e)
  %f = host.empty : !aten.tensor<64xf16>
  %w = host.view %f offset 0 : !aten.tensor<32xf16>
  host.copy %e to %w
  %g = aten.relu(%v) : !aten.tensor<8xf32>
  %h = aten.relu(%c) : !aten.tensor<4x8xf32>
  host.return %e, %g, %h
}

// CHECK-LABEL: kernel.func @reverse
// CHECK-NEXT: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: %v = kernel.load %x[-i0 + 31]
// CHECK-NEXT: kernel.store %v, %y[i0]
// CHECK-LABEL: kernel.func @late
// CHECK-NEXT: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: %c = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: kernel.store %c, %y[i0]
// CHECK-NEXT: %v = kernel.load %x[i0]
// CHECK-LABEL: kernel.func @negate
// CHECK-NEXT: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: %v = kernel.load %x[i0]
// CHECK-NEXT: %w = arith.negf %v : f32
// CHECK-NEXT: kernel.store %w, %y[i0]
// CHECK-LABEL: host.func @take_over
// CHECK: %c = host.view %a offset 0 : !aten.tensor<4x8xf32>
// CHECK: %f = host.view %b offset 0 : !aten.tensor<64xf16>

// -----

// The channel is the outermost loop, though not the largest stride: each element is still read where it is written.

kernel.func @channels(%s: !kernel.buffer<f32, 3>, %x: !kernel.buffer<f32, 24>, %y: !kernel.buffer<f32, 24>) {
  kernel.for i1 in 0 to 3 {
    kernel.for i0 in 0 to 2 {
      kernel.for i2 in 0 to 4 {
        %a = kernel.load %s[i1]
        %b = kernel.load %x[12*i0 + 4*i1 + i2]
        %c = arith.mulf %a, %b : f32
        kernel.store %c, %y[12*i0 + 4*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @outermost(%s: !aten.tensor<3xf32>, %x: !aten.tensor<2x3x4xf32>, %w: !aten.tensor<3x3x1xf32>) -> (!aten.tensor<2x3x4xf32>) symbols [] {
  %a = aten.convolution(%x, %w, stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1) : !aten.tensor<2x3x4xf32>
  %b = host.empty : !aten.tensor<2x3x4xf32>
  host.launch @channels(%s, %a, %b)
  host.return %b
}

// CHECK-LABEL: kernel.func @channels(%s: !kernel.buffer<f32, 3>, %y: !kernel.buffer<f32, 24>) {
// CHECK-LABEL: host.func @outermost
// CHECK: host.launch @channels(%s, %a)
// CHECK-NEXT: host.return %a

// -----

// The two rows overlap by an index: what one iteration writes another one reads.

kernel.func @overlap(%x: !kernel.buffer<f32, 24>, %y: !kernel.buffer<f32, 24>) {
  kernel.for i1 in 0 to 4 {
    kernel.for i0 in 0 to 2 {
      %b = kernel.load %x[3*i0 + i1]
      kernel.store %b, %y[3*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @overlapping(%x: !aten.tensor<24xf32>) -> (!aten.tensor<24xf32>) symbols [] {
  %a = host.empty : !aten.tensor<24xf32>
  host.copy %x to %a
  %b = host.empty : !aten.tensor<24xf32>
  host.launch @overlap(%a, %b)
  host.return %b
}

// CHECK-LABEL: kernel.func @overlap
// CHECK-NEXT: kernel.for i1 in 0 to 4 {
// CHECK-NEXT: kernel.for i0 in 0 to 2 {
// CHECK-NEXT: %b = kernel.load %x[3*i0 + i1]
// CHECK-NEXT: kernel.store %b, %y[3*i0 + i1]
// CHECK-LABEL: host.func @overlapping
// CHECK-NEXT: %a = host.empty : !aten.tensor<24xf32>
// CHECK-NEXT: host.copy %x to %a
// CHECK-NEXT: %b = host.empty : !aten.tensor<24xf32>
// CHECK-NEXT: host.launch @overlap(%a, %b)
// CHECK-NEXT: host.return %b

// -----

// Holding %a until %c wants its memory would put it on top of the large %b.

host.func @peak(%x: !aten.tensor<2048xf32>, %y: !aten.tensor<4096xf32>) -> (!aten.tensor<2048xf32>) symbols [] {
  %a = host.empty : !aten.tensor<2048xf32>
  host.copy %x to %a
  %b = host.empty : !aten.tensor<4096xf32>
  host.copy %y to %b
  %c = host.empty : !aten.tensor<2048xf32>
  host.copy %x to %c
  host.return %c
}

// CHECK-LABEL: host.func @peak
// CHECK-NEXT: %a = host.empty : !aten.tensor<2048xf32>
// CHECK-NEXT: host.copy %x to %a
// CHECK-NEXT: %b = host.empty : !aten.tensor<4096xf32>
// CHECK-NEXT: host.copy %y to %b
// CHECK-NEXT: %c = host.empty : !aten.tensor<2048xf32>
// CHECK-NEXT: host.copy %x to %c
// CHECK-NEXT: host.return %c

// -----

// The gradient of a convolution's input is fresh memory. Its third result is none, and no memory.

kernel.func @twice(%x: !kernel.buffer<f32, 24>, %y: !kernel.buffer<f32, 24>) {
  kernel.for i0 in 0 to 24 {
    %0 = kernel.load %x[i0]
    %1 = arith.addf %0, %0 : f32
    kernel.store %1, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @gradient(%g: !aten.tensor<2x3x4xf32>, %x: !aten.tensor<2x3x4xf32>, %w: !aten.tensor<3x3x1xf32>) -> (!aten.tensor<2x3x4xf32>, !aten.tensor<3x3x1xf32>) symbols [] {
  %a, %b, %c = aten.convolution_backward(%g, %x, %w, bias_sizes = [0], stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1, output_mask = [true, true, false]) : !aten.tensor<2x3x4xf32>, !aten.tensor<3x3x1xf32>, none
  %d = host.empty : !aten.tensor<2x3x4xf32>
  host.launch @twice(%a, %d)
  host.return %d, %b
}

// CHECK-LABEL: kernel.func @twice(%y: !kernel.buffer<f32, 24>) {
// CHECK-LABEL: host.func @gradient
// CHECK: host.launch @twice(%a)
// CHECK-NEXT: host.return %a, %b

// -----

// Nor is %a held on top of %b because more is live later: arguments that are given up may die in between.

host.func @early(%x: !aten.tensor<2048xf32>, %y: !aten.tensor<1024xf32>, %z: !aten.tensor<8192xf32>) -> (!aten.tensor<2048xf32>, !aten.tensor<8192xf32>) symbols [] {
  %a = host.empty : !aten.tensor<2048xf32>
  host.copy %x to %a
  %b = host.empty : !aten.tensor<1024xf32>
  host.copy %y to %b
  %c = host.empty : !aten.tensor<2048xf32>
  host.copy %x to %c
  %d = host.empty : !aten.tensor<8192xf32>
  host.copy %z to %d
  host.return %c, %d
}

// CHECK-LABEL: host.func @early
// CHECK-NEXT: %a = host.empty : !aten.tensor<2048xf32>
// CHECK-NEXT: host.copy %x to %a
// CHECK-NEXT: %b = host.empty : !aten.tensor<1024xf32>
// CHECK-NEXT: host.copy %y to %b
// CHECK-NEXT: %c = host.empty : !aten.tensor<2048xf32>
// CHECK-NEXT: host.copy %x to %c
// CHECK-NEXT: %d = host.empty : !aten.tensor<8192xf32>
// CHECK-NEXT: host.copy %z to %d
// CHECK-NEXT: host.return %c, %d

// -----

// What a product of ours makes is written over like ATen's, though another such product reads it; it keeps nothing.

kernel.func @root(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %0 = kernel.load %x[i0]
    %1 = math.sqrt %0 : f32
    kernel.store %1, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @packed(%x: !aten.tensor<8x8xf32>, %w: !aten.tensor<8x8xf32>) -> (!aten.tensor<8x8xf32>) symbols [] {
  %p = aten.call pure "inductile::packed_product"(%x, %w, none) : !aten.tensor<8x8xf32>
  %r = host.empty : !aten.tensor<8x8xf32>
  host.launch @root(%p, %r)
  %q = aten.call pure "inductile::packed_product"(%r, %w, none) : !aten.tensor<8x8xf32>
  host.return %q
}

// CHECK-LABEL: host.func @packed(
// CHECK-NEXT: %p = aten.call pure "inductile::packed_product"
// CHECK-NEXT: host.launch @root(%p)
// CHECK-NEXT: aten.call pure "inductile::packed_product"(%p
