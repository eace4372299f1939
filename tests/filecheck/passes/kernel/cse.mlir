// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-cse | filecheck %s

// Loads of what is only read merge, into inner blocks too; what was stored right before is not loaded; the row, then
// read by nothing, goes, and so does a loop without effect.

kernel.func @merge(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %row = kernel.local : !kernel.buffer<f32, 1, local>
    %a = kernel.load %x[i0]
    %b = kernel.load %x[i0]
    kernel.store %a, %row[0]
    %c = kernel.load %row[0]
    %s = kernel.reduce sum i1 in 0 to 3 {
      %d = kernel.load %x[i0]
      %e = arith.addf %d, %c : f32
      kernel.yield %e
    }
    %unused = kernel.reduce max i1 in 0 to 3 {
      %d = kernel.load %x[i1]
      kernel.yield %d
    }
    %f = arith.addf %b, %c : f32
    %g = arith.addf %f, %s : f32
    kernel.store %g, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @merge
// CHECK-NEXT: kernel.for i0 in 0 to 8 {
// CHECK-NEXT: %a = kernel.load %x[i0]
// CHECK-NEXT: %s = kernel.reduce sum i1 in 0 to 3 {
// CHECK-NEXT: %e = arith.addf %a, %a : f32
// CHECK-NEXT: kernel.yield %e

// -----

// Not merged: loads around a write to the same buffer, at another place or in a loop; a masked store forwards nothing;
// zeros of different sign; casts to different types; assertions stay.

kernel.func @apart(%x: !kernel.buffer<f32, 8>, %m: !kernel.buffer<i1, 1>, %y: !kernel.buffer<f32, 8>, %z: !kernel.buffer<f64, 8>) errors ["RuntimeError: no"] {
  %a = kernel.load %x[0]
  %p = arith.constant 0.0 : f32
  %n = arith.constant -0.0 : f32
  kernel.store %p, %x[1]
  %b = kernel.load %x[0]
  kernel.store %n, %x[0]
  kernel.for i0 in 0 to 8 {
    kernel.store %p, %x[i0]
    kernel.yield
  }
  %c = kernel.load %x[0]
  %k = kernel.load %m[0]
  kernel.store %a, %y[0]
  kernel.store %b, %y[0] if %k
  %d = kernel.load %y[0]
  kernel.store %c, %y[1]
  kernel.store %d, %y[2]
  %e = scalar.cast %c : f32 to f64
  %f = scalar.cast %c : f32 to f16
  %g = scalar.cast %f : f16 to f64
  kernel.store %e, %z[0]
  kernel.store %g, %z[1]
  kernel.assert %k, 1
  kernel.yield
}

// CHECK-LABEL: kernel.func @apart
// CHECK: %a = kernel.load %x[0]
// CHECK: kernel.store %p, %x[1]
// CHECK: %b = kernel.load %x[0]
// CHECK-NEXT: kernel.store %n, %x[0]
// CHECK: kernel.for i0 in 0 to 8 {
// CHECK: %c = kernel.load %x[0]
// CHECK: kernel.store %b, %y[0] if %k
// CHECK-NEXT: %d = kernel.load %y[0]
// CHECK: scalar.cast %c : f32 to f64
// CHECK: scalar.cast %f : f16 to f64
// CHECK: kernel.assert %k, 1

// -----

// A stored value reaches into loops that do not write its buffer.

kernel.func @into_loops(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 8>) {
  %t = kernel.local : !kernel.buffer<f32, 8, local>
  %u = kernel.local : !kernel.buffer<f32, 1, local>
  kernel.for i0 in 0 to 8 {
    %a = kernel.load %x[i0]
    kernel.store %a, %t[i0]
    kernel.store %a, %u[0]
    kernel.for i1 in 0 to 8 {
      %b = kernel.load %t[i0]
      kernel.store %b, %y[8*i0 + i1]
      %c = kernel.load %u[0]
      %d = arith.addf %c, %b : f32
      kernel.store %d, %u[0]
      kernel.yield
    }
    %e = kernel.load %u[0]
    kernel.store %e, %z[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @into_loops(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 8>) {
// CHECK-NEXT: %u = kernel.local : !kernel.buffer<f32, 1, local>
// CHECK: %a = kernel.load %x[i0]
// CHECK-NEXT: kernel.store %a, %u[0]
// CHECK-NEXT: kernel.for i1 in 0 to 8 {
// CHECK-NEXT: kernel.store %a, %y[8*i0 + i1]

// -----

// Reductions to what is used: the value of an argmax without its index, one of two sums, through both loops.

kernel.func @prune(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 2>) {
  %a, %b, %c = kernel.reduce [argmax, sum] i0 in 0 to 8 {
    %d, %e, %f = kernel.reduce [argmax, sum] i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %n = kernel.index 8*i0 + i1
      kernel.yield %v, %n, %v
    }
    kernel.yield %d, %e, %f
  }
  kernel.store %a, %y[0]
  %m, %s, %k = kernel.reduce welford i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %z = arith.constant 0.0 : f32
    %o = arith.constant 1.0 : f32
    kernel.yield %v, %z, %o
  }
  kernel.store %m, %y[1]
  kernel.yield
}

// CHECK-LABEL: kernel.func @prune
// CHECK-NEXT: %a = kernel.reduce max i0 in 0 to 8 {
// CHECK-NEXT: %d = kernel.reduce max i1 in 0 to 8 {
// CHECK-NEXT: %v = kernel.load %x[8*i0 + i1]
// CHECK-NEXT: kernel.yield %v
// CHECK-NEXT: }
