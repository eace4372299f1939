// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-collapse | filecheck %s

// All three axes occur as one linear index.

kernel.func @pointwise(%x: !kernel.buffer<f32, 12*s0>, %y: !kernel.buffer<f32, 12*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    kernel.for i1 in 0 to 3 {
      kernel.for i2 in 0 to 4 {
        %v = kernel.load %x[12*i0 + 4*i1 + i2]
        %n = kernel.index 12*i0 + 4*i1 + i2
        %f = arith.sitofp %n : i64 to f32
        %w = arith.addf %v, %f : f32
        kernel.store %w, %y[24*i0 + 8*i1 + 2*i2 + 1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @pointwise
// CHECK-NEXT: kernel.for i0 in 0 to 12*s0 {
// CHECK-NEXT: %v = kernel.load %x[i0]
// CHECK-NEXT: %n = kernel.index i0
// CHECK-NEXT: %f = arith.sitofp %n : i64 to f32
// CHECK: kernel.store %w, %y[2*i0 + 1]

// -----

// The last axis is needed for the bias: only the first two become one.

kernel.func @bias(%x: !kernel.buffer<f32, s0*s1*8>, %b: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, s0*s1*8>) symbols (s0, s1) {
  kernel.for i0 in 0 to s0 {
    kernel.for i1 in 0 to s1 {
      kernel.for i2 in 0 to 8 {
        %v = kernel.load %x[8*s1*i0 + 8*i1 + i2]
        %c = kernel.load %b[i2]
        %w = arith.addf %v, %c : f32
        kernel.store %w, %y[8*s1*i0 + 8*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @bias
// CHECK-NEXT: kernel.for i0 in 0 to s0*s1 {
// CHECK-NEXT: kernel.for i2 in 0 to 8 {
// CHECK-NEXT: %v = kernel.load %x[8*i0 + i2]
// CHECK: kernel.store %w, %y[8*i0 + i2]

// -----

// Reductions collapse when the outer one only passes on; rows are addressed by the same linear index. A loop of one
// iteration goes.

kernel.func @rows(%x: !kernel.buffer<f32, 24*s0>, %y: !kernel.buffer<f32, 2*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    kernel.for i3 in 0 to 1 {
      %row = kernel.local : !kernel.buffer<f32, 24, local>
      kernel.for i1 in 0 to 4 {
        kernel.for i2 in 0 to 6 {
          %v = kernel.load %x[24*i0 + 24*i3 + 6*i1 + i2]
          kernel.store %v, %row[6*i1 + i2]
          kernel.yield
        }
        kernel.yield
      }
      %a, %b = kernel.reduce [sum, max] i1 in 0 to 4 {
        %c, %d = kernel.reduce [sum, max] i2 in 0 to 6 {
          %v = kernel.load %row[6*i1 + i2]
          kernel.yield %v, %v
        }
        kernel.yield %c, %d
      }
      kernel.store %a, %y[2*i0]
      kernel.store %b, %y[2*i0 + 1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @rows
// CHECK-NEXT: kernel.for i0 in 0 to s0 {
// CHECK-NEXT: %row = kernel.local : !kernel.buffer<f32, 24, local>
// CHECK-NEXT: kernel.for i1 in 0 to 24 {
// CHECK-NEXT: %v = kernel.load %x[24*i0 + i1]
// CHECK-NEXT: kernel.store %v, %row[i1]
// CHECK-NEXT: kernel.yield
// CHECK: %a, %b = kernel.reduce [sum, max] i1 in 0 to 24 {
// CHECK-NEXT: %v_1 = kernel.load %row[i1]
// CHECK-NEXT: kernel.yield %v_1, %v_1

// -----

// Not collapsed: other strides, results that change places, work between the loops.

kernel.func @apart(%x: !kernel.buffer<f32, 100>, %y: !kernel.buffer<f32, 100>) {
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 6 {
      %v = kernel.load %x[6*i0 + i1]
      kernel.store %v, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  %a, %b = kernel.reduce [max, max] i1 in 0 to 4 {
    %c, %d = kernel.reduce [max, max] i2 in 0 to 6 {
      %v = kernel.load %x[6*i1 + i2]
      kernel.yield %v, %v
    }
    kernel.yield %d, %c
  }
  kernel.store %a, %y[0]
  %e = kernel.reduce sum i1 in 0 to 4 {
    %c = kernel.reduce max i2 in 0 to 6 {
      %v = kernel.load %x[6*i1 + i2]
      kernel.yield %v
    }
    kernel.yield %c
  }
  kernel.store %e, %y[1]
  kernel.yield
}

// CHECK-LABEL: kernel.func @apart
// CHECK-NEXT: kernel.for i0 in 0 to 4 {
// CHECK-NEXT: kernel.for i1 in 0 to 6 {
// CHECK: %a, %b = kernel.reduce [max, max] i1 in 0 to 4 {
// CHECK-NEXT: %c, %d = kernel.reduce [max, max] i2 in 0 to 6 {
// CHECK: %e = kernel.reduce sum i1 in 0 to 4 {
// CHECK-NEXT: %c_1 = kernel.reduce max i2 in 0 to 6 {

// -----

// A reduction of one element is that element; what is around it can be tiled then.

kernel.func @one_element(%x: !kernel.buffer<f32, 8*s0>, %y: !kernel.buffer<f32, 8>) symbols (s0) {
  kernel.for i0 in 0 to 8 {
    %s = kernel.reduce sum r0 in 0 to s0 {
      %t = kernel.reduce sum r1 in 0 to 1 {
        %v = kernel.load %x[8*r0 + i0 + r1]
        kernel.yield %v
      }
      kernel.yield %t
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @one_element
// CHECK: %v = kernel.load %x[8*r0 + i0]
// CHECK-NEXT: %0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %t = arith.addf %0, %v : f32

// -----

// Bounds of pixels are bounds of their bytes, three times as large, also where an axis runs backwards.

builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp">} {
kernel.func @pixels(%x: !kernel.buffer<ui8, 192>, %y: !kernel.buffer<ui8, 204>) {
  kernel.for i0 in 0 to 68 {
    kernel.for i1 in 0 to 3 {
      %first = arith.constant 0 : i64
      %last = arith.constant 64 : i64
      %i = kernel.index i0 - 2
      %back = kernel.index 65 - i0
      %ge = arith.cmpi sge, %i, %first : i64
      %lt = arith.cmpi slt, %i, %last : i64
      %le = arith.cmpi sge, %back, %first : i64
      %both = arith.andi %ge, %lt : i1
      %all = arith.andi %both, %le : i1
      %none = arith.constant 0 : i8
      %v = kernel.load %x[3*i0 + i1 - 6] if %all else %none
      kernel.store %v, %y[3*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
}

// CHECK-LABEL: kernel.func @pixels
// CHECK-NEXT:    kernel.for i0 in 0 to 204 {
// CHECK:           %i = kernel.index i0 - 6
// CHECK-NEXT:      %back = kernel.index -i0 + 197
// CHECK-NEXT:      %[[LOW:.*]] = kernel.index 0
// CHECK-NEXT:      %ge = arith.cmpi sge, %i, %[[LOW]] : i64
// CHECK-NEXT:      %[[HIGH:.*]] = kernel.index 192
// CHECK-NEXT:      %lt = arith.cmpi slt, %i, %[[HIGH]] : i64
// CHECK-NEXT:      %[[END:.*]] = kernel.index 0
// CHECK-NEXT:      %le = arith.cmpi sge, %back, %[[END]] : i64
// CHECK:           kernel.load %x[i0 - 6] if
