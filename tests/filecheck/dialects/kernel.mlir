// RUN: inductile-opt %s | inductile-opt - | filecheck %s
// Text in is text out, and what is printed parses back to the same text.

// RUN: inductile-opt %s --print-op-generic | inductile-opt - | filecheck %s
kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) target "cpp" {
  kernel.for i0 in 0 to s0 map parallel {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %m = kernel.reduce max r0 in 0 to 4096 map vector {
      %v = kernel.load %x[4096*i0 + r0]
      kernel.yield %v
    }
    %s = kernel.reduce sum r0 in 0 to 4096 map vector {
      %v = kernel.load %x[4096*i0 + r0]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[r0]
      kernel.yield %e
    }
    kernel.for r0 in 0 to 4096 map vector tile 16 unroll 4 {
      %e = kernel.load %row[r0]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[4096*i0 + r0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @updates(%x: !kernel.buffer<ui8, 64>, %i: !kernel.buffer<i64, 64>, %y: !kernel.buffer<i64, 8>) errors ["IndexError: index out of range"] {
  kernel.for i0 in 0 to 64 map grid tile 32 {
    %j = kernel.load %i[i0]
    %eight = kernel.index 8
    %ok = arith.cmpi ult, %j, %eight : i64
    kernel.assert %ok, 1
    %zero = arith.constant 0 : i8
    %v = kernel.load %x[i0] if %ok else %zero
    %w = scalar.cast %v : ui8 to i64
    kernel.store add atomic %w, %y[d0] (d0 = %j) if %ok
    kernel.yield
  }
  kernel.scan sum r0 in 0 to 8 map serial unroll 2 {
    %v = kernel.load %y[r0]
    kernel.yield %v
  } then {
  ^bb0(%running: i64):
    kernel.store %running, %y[r0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) target "cpp" {
// CHECK-NEXT:     kernel.for i0 in 0 to s0 map parallel {
// CHECK-NEXT:       %row = kernel.local : !kernel.buffer<f32, 4096, local>
// CHECK-NEXT:       %m = kernel.reduce max r0 in 0 to 4096 map vector {
// CHECK-NEXT:         %v = kernel.load %x[4096*i0 + r0]
// CHECK-NEXT:         kernel.yield %v
// CHECK-NEXT:       }
// CHECK-NEXT:       %s = kernel.reduce sum r0 in 0 to 4096 map vector {
// CHECK-NEXT:         %v_1 = kernel.load %x[4096*i0 + r0]
// CHECK-NEXT:         %d = arith.subf %v_1, %m : f32
// CHECK-NEXT:         %e = math.exp %d : f32
// CHECK-NEXT:         kernel.store %e, %row[r0]
// CHECK-NEXT:         kernel.yield %e
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.for r0 in 0 to 4096 map vector tile 16 unroll 4 {
// CHECK-NEXT:         %e_1 = kernel.load %row[r0]
// CHECK-NEXT:         %q = arith.divf %e_1, %s : f32
// CHECK-NEXT:         kernel.store %q, %y[4096*i0 + r0]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @updates(%x: !kernel.buffer<ui8, 64>, %i: !kernel.buffer<i64, 64>, %y: !kernel.buffer<i64, 8>) errors ["IndexError: index out of range"] {
// CHECK-NEXT:     kernel.for i0 in 0 to 64 map grid tile 32 {
// CHECK-NEXT:       %j = kernel.load %i[i0]
// CHECK-NEXT:       %eight = kernel.index 8
// CHECK-NEXT:       %ok = arith.cmpi ult, %j, %eight : i64
// CHECK-NEXT:       kernel.assert %ok, 1
// CHECK-NEXT:       %zero = arith.constant 0 : i8
// CHECK-NEXT:       %v = kernel.load %x[i0] if %ok else %zero
// CHECK-NEXT:       %w = scalar.cast %v : ui8 to i64
// CHECK-NEXT:       kernel.store add atomic %w, %y[d0] (d0 = %j) if %ok
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.scan sum r0 in 0 to 8 map serial unroll 2 {
// CHECK-NEXT:       %v_1 = kernel.load %y[r0]
// CHECK-NEXT:       kernel.yield %v_1
// CHECK-NEXT:     } then {
// CHECK-NEXT:     ^bb0(%running: i64):
// CHECK-NEXT:       kernel.store %running, %y[r0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
