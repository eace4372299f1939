// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-map,kernel-fold-rows | filecheck %s

// A rotation of what a row was divided by: a lane takes an element of each half, and nothing is masked or selected.

kernel.func @rotate(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 16 {
    %s = kernel.reduce sum i1 in 0 to 128 {
      %v = kernel.load %x[128*i0 + i1]
      kernel.yield %v
    }
    kernel.for i2 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i2
      %n = kernel.index 64
      %c = arith.cmpi slt, %i, %n : i64
      %v = kernel.load %x[128*i0 + i2]
      %r = kernel.load %x[128*i0 + i2 + 64] if %c else %z
      %o = arith.addf %v, %r : f32
      %d = arith.divf %o, %s : f32
      kernel.store %d, %y[128*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @rotate
// CHECK: kernel.reduce sum i1 in 0 to 128 {
// CHECK: kernel.for i2 in 0 to 64 {
// CHECK-DAG: kernel.load %x[128*i0 + i2]{{$}}
// CHECK-DAG: kernel.load %x[128*i0 + i2 + 64]{{$}}
// CHECK-NOT: if %
// CHECK: kernel.store %{{.*}}, %y[128*i0 + i2]
// CHECK-NOT: if %
// CHECK: kernel.store %{{.*}}, %y[128*i0 + i2 + 64]

// -----

// What a loop keeps for another one stays where it is.

kernel.func @kept(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 16 {
    %row = kernel.local : !kernel.buffer<f32, 128, local>
    kernel.for i1 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 64
      %c = arith.cmpi slt, %i, %n : i64
      %v = kernel.load %x[128*i0 + i1]
      %r = kernel.load %x[128*i0 + i1 + 64] if %c else %z
      %o = arith.addf %v, %r : f32
      kernel.store %o, %row[i1]
      kernel.yield
    }
    kernel.for i2 in 0 to 128 {
      %v = kernel.load %row[i2]
      kernel.store %v, %y[128*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @kept
// CHECK: kernel.for i1 in 0 to 128 {
