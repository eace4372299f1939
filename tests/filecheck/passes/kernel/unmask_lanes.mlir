// RUN: inductile-opt %s --split-input-file --verify-each --pipeline schedule | filecheck %s

// Rows of a table: all lanes share the index, so that it is checked once, and no lane has a mask.
kernel.func @rows(%i: !kernel.buffer<i64, 4096>, %x: !kernel.buffer<f32, 262144>, %y: !kernel.buffer<f32, 1048576>) errors ["index out of range"] {
  kernel.for i0 in 0 to 4096 {
    kernel.for i1 in 0 to 256 {
      %row = kernel.load %i[i0]
      %zero = arith.constant 0 : i64
      %many = arith.constant 1024 : i64
      %low = arith.cmpi sge, %row, %zero : i64
      %high = arith.cmpi slt, %row, %many : i64
      %ok = arith.andi %low, %high : i1
      kernel.assert %ok, 1
      %none = arith.constant 0.0 : f32
      %v = kernel.load %x[256*d0 + i1] (d0 = %row) if %ok else %none
      kernel.store %v, %y[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @rows
// CHECK:         %row = kernel.load %i[i0]
// CHECK:         kernel.assert %ok, 1
// CHECK:         [[CHOSEN:%[0-9a-z_]+]] = arith.select %ok, %row, {{.*}} : i64
// CHECK-NEXT:    kernel.for i1 in 0 to 256 map vector
// CHECK-NOT:       if %ok
// CHECK:           kernel.load %x[256*d0 + i1] (d0 = [[CHOSEN]])
// CHECK-NOT:       if %ok

// -----

// Each lane has an index of its own.
kernel.func @elements(%i: !kernel.buffer<i64, 4096>, %x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 4096>) errors ["index out of range"] {
  kernel.for i0 in 0 to 4096 {
    %row = kernel.load %i[i0]
    %many = arith.constant 1024 : i64
    %ok = arith.cmpi ult, %row, %many : i64
    kernel.assert %ok, 1
    %none = arith.constant 0.0 : f32
    %v = kernel.load %x[d0] (d0 = %row) if %ok else %none
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @elements
// CHECK:         kernel.for i0 in
// CHECK:           kernel.assert %ok, 1
// CHECK:           kernel.load %x[d0] (d0 = %row) if %ok

// -----

// The table may have no row to read instead.
kernel.func @few(%i: !kernel.buffer<i64, 4096>, %x: !kernel.buffer<f32, 256*s0>, %y: !kernel.buffer<f32, 1048576>) symbols (s0) {
  kernel.for i0 in 0 to 4096 {
    kernel.for i1 in 0 to 256 {
      %row = kernel.load %i[i0]
      %many = kernel.index s0
      %ok = arith.cmpi ult, %row, %many : i64
      %none = arith.constant 0.0 : f32
      %v = kernel.load %x[256*d0 + i1] (d0 = %row) if %ok else %none
      kernel.store %v, %y[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @few
// CHECK:           kernel.load %x[256*d0 + i1] (d0 = %row) if %ok
