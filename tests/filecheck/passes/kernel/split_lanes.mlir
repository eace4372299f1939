// RUN: inductile-opt %s --split-input-file --verify-each --pipeline schedule --start-at kernel-map --stop-after kernel-split-lanes | filecheck %s

// Conditions on the axis of the lanes, either way round: each part has none, and no masks.

kernel.func @pieces(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %c = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 63
      %below = arith.cmpi sle, %i, %n : i64
      %above = arith.cmpi slt, %n, %i : i64
      %a = kernel.load %x[64*i0 + i1] if %below else %c
      %b = kernel.load %y[64*i0 + i1 - 64] if %above else %c
      %v = arith.select %above, %b, %a : f32
      kernel.store %v, %z[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @pieces
// CHECK:         kernel.for i1 in 0 to 64 map vector tile 16 {
// CHECK-NEXT:      %[[A:.*]] = kernel.load %x[64*i0 + i1]
// CHECK-NEXT:      kernel.store %[[A]], %z[128*i0 + i1]
// CHECK:         kernel.for i1 in 64 to 128 map vector tile 16 {
// CHECK-NEXT:      %[[B:.*]] = kernel.load %y[64*i0 + i1 - 64]
// CHECK-NEXT:      kernel.store %[[B]], %z[128*i0 + i1]

// -----

// A part shorter than the lanes: the masks stay.

kernel.func @edge(%x: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %c = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 3
      %inside = arith.cmpi sge, %i, %n : i64
      %a = kernel.load %x[64*i0 + i1] if %inside else %c
      kernel.store %a, %z[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @edge
// CHECK:         kernel.load %x[{{.*}}] if %inside else %c
// CHECK-NOT:     kernel.for

// -----

// `roll` by three: two runs of neighbours, though one of them is short.

kernel.func @roll(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %x[64*i0 + (i1 + 61) mod 64]
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @roll
// CHECK:         kernel.for i1 in 0 to 3 map vector tile 16 {
// CHECK-NEXT:      kernel.load %x[64*i0 + i1 + 61]
// CHECK:         kernel.for i1 in 3 to 64 map vector tile 16 {
// CHECK-NEXT:      kernel.load %x[64*i0 + i1 - 3]

// -----

// A quotient of an axis that runs backwards changes where it passes a multiple.

kernel.func @back(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %x[64*i0 + (-i1 + 103) mod 64]
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @back
// CHECK:         kernel.for i1 in 0 to 40 map vector tile 16 {
// CHECK-NEXT:      kernel.load %x[64*i0 - i1 + 39]
// CHECK:         kernel.for i1 in 40 to 64 map vector tile 16 {
// CHECK-NEXT:      kernel.load %x[64*i0 - i1 + 103]

// -----

// Conditions that leave too short a part stay; the quotient is still one number in each part.

kernel.func @both(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %c = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = arith.constant 3 : i64
      %inside = arith.cmpi sge, %i, %n : i64
      %a = kernel.load %x[64*i0 + (i1 + 32) mod 64] if %inside else %c
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @both
// CHECK:         kernel.for i1 in 0 to 32 map vector tile 16 {
// CHECK:           kernel.load %x[64*i0 + i1 + 32] if %inside
// CHECK:         kernel.for i1 in 32 to 64 map vector tile 16 {
// CHECK-NEXT:      kernel.load %x[64*i0 + i1 - 32]
// CHECK-NOT:     mod
