// RUN: inductile-opt %s --split-input-file --verify-each --target cpp --pipeline schedule --start-at kernel-map --stop-after kernel-peel-lanes | filecheck %s

// A mask at both ends of the axis, part of a conjunction: the middle has none.

kernel.func @window(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %zero = arith.constant 0.0 : f32
      %i = kernel.index i1 - 1
      %j = kernel.index i1 + 1
      %first = arith.constant 0 : i64
      %n = kernel.index 64
      %z = kernel.index 0
      %above = arith.cmpi sge, %i, %z : i64
      %below = arith.cmpi slt, %j, %n : i64
      %both = arith.andi %above, %below : i1
      %a = kernel.load %x[64*i0 + i1 + 1] if %both else %zero
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @window
// CHECK:         kernel.for i1 in 0 to 8 map vector
// CHECK-COUNT-1:   arith.cmpi sge
// CHECK-NOT:       arith.cmpi
// CHECK:         kernel.for i1 in 8 to 56 map vector
// CHECK-NEXT:      %[[A:.*]] = kernel.load %x[64*i0 + i1 + 1]
// CHECK-NEXT:      kernel.store %[[A]], %y[64*i0 + i1]
// CHECK:         kernel.for i1 in 56 to 64 map vector
// CHECK-COUNT-1:   arith.cmpi slt
// CHECK-NOT:       arith.cmpi

// -----

// A clamp at one end: two loops.

kernel.func @clamp(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %x[32*i0 + max(i1 - 1, 0) floordiv 2]
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @clamp
// CHECK:         kernel.for i1 in 0 to 8 map vector
// CHECK-NEXT:      kernel.load %x[32*i0 + max(i1 - 1, 0) floordiv 2]
// CHECK:         kernel.for i1 in 8 to 64 map vector
// CHECK-NEXT:      kernel.load %x[32*i0 + (i1 + 1) floordiv 2 - 1]
// CHECK-NOT:     kernel.for

// -----

// A size that only the call knows: the ends may meet.

kernel.func @dynamic(%x: !kernel.buffer<f32, 64*s0>, %y: !kernel.buffer<f32, 64*s0>) symbols (s0) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to s0 {
      %zero = arith.constant 0.0 : f32
      %j = kernel.index i1 + 1
      %n = kernel.index s0
      %below = arith.cmpi slt, %j, %n : i64
      %a = kernel.load %x[i0*s0 + i1 + 1] if %below else %zero
      kernel.store %a, %y[i0*s0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @dynamic
// CHECK:         kernel.for i1 in 0 to max(s0 - 8, 0) map vector
// CHECK-NEXT:      kernel.load %x[i0*s0 + i1 + 1]{{$}}

// -----

// A short axis stays as it is.

kernel.func @short(%x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 16 {
      %a = kernel.load %x[16*i0 + max(i1 - 1, 0)]
      kernel.store %a, %y[16*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @short
// CHECK:         kernel.for i1 in 0 to 16 map vector
// CHECK-NOT:     kernel.for i1

// -----

// Rows too: between the first and the last no row is masked.

kernel.func @rows(%x: !kernel.buffer<f32, 65536>, %y: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 32 {
      kernel.for i2 in 0 to 32 {
        %zero = arith.constant 0.0 : f32
        %i = kernel.index i1 - 1
        %z = kernel.index 0
        %above = arith.cmpi sge, %i, %z : i64
        %a = kernel.load %x[1024*i0 + 32*i1 + i2 - 32] if %above else %zero
        %b = kernel.load %x[1024*i0 + 32*i1 + i2]
        %c = arith.addf %a, %b : f32
        %d = math.exp %c : f32
        kernel.store %d, %y[1024*i0 + 32*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @rows
// CHECK:         kernel.for i0 in 0 to 64
// CHECK:           kernel.for i1 in 0 to 1 {
// CHECK:             kernel.for i2
// CHECK-NEXT:          kernel.load %x[1024*i0 + 32*i1 + i2]
// CHECK:           kernel.for i1 in 1 to 32 {
// CHECK-NEXT:        kernel.for i2
// CHECK-NEXT:          kernel.load %x[1024*i0 + 32*i1 + i2 - 32]{{$}}

// -----

// A conjunction of a condition with itself.

kernel.func @twice(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4224>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 66 {
      %zero = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 64
      %in = arith.cmpi slt, %i, %n : i64
      %both = arith.andi %in, %in : i1
      %a = kernel.load %x[64*i0 + i1] if %both else %zero
      kernel.store %a, %y[66*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @twice
// CHECK:         kernel.for i1 in 0 to 56 map vector
// CHECK-NEXT:      %[[A:.*]] = kernel.load %x[64*i0 + i1]
// CHECK-NEXT:      kernel.store %[[A]], %y[66*i0 + i1]
