// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-merge-loops | filecheck %s

// Softmax: the exponentials and their sum are one loop; the maximum has to be known before, the sum before the division.

kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %m = kernel.reduce max i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      kernel.yield %v
    }
    %e = kernel.local : !kernel.buffer<f32, 4096, local>
    kernel.for i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %d = arith.subf %v, %m : f32
      %w = math.exp %d : f32
      kernel.store %w, %e[i1]
      kernel.yield
    }
    %s = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %e[i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 4096 {
      %v = kernel.load %e[i1]
      %q = arith.divf %v, %s : f32
      kernel.store %q, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) {
// CHECK-NEXT:     kernel.for i0 in 0 to s0 {
// CHECK-NEXT:       %m = kernel.reduce max i1 in 0 to 4096 {
// CHECK-NEXT:         %v = kernel.load %x[4096*i0 + i1]
// CHECK-NEXT:         kernel.yield %v
// CHECK-NEXT:       }
// CHECK-NEXT:       %e = kernel.local : !kernel.buffer<f32, 4096, local>
// CHECK-NEXT:       %s = kernel.reduce sum i1 in 0 to 4096 {
// CHECK-NEXT:         %v_1 = kernel.load %x[4096*i0 + i1]
// CHECK-NEXT:         %d = arith.subf %v_1, %m : f32
// CHECK-NEXT:         %w = math.exp %d : f32
// CHECK-NEXT:         kernel.store %w, %e[i1]
// CHECK-NEXT:         kernel.yield %w
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.for i1 in 0 to 4096 {
// CHECK-NEXT:         %v_2 = kernel.load %e[i1]
// CHECK-NEXT:         %q = arith.divf %v_2, %s : f32
// CHECK-NEXT:         kernel.store %q, %y[4096*i0 + i1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// What only the merged loop reads is a scalar; two reductions are one loop with two combiners. The axes may have
// other names. The constant that the second needs moves in front.

kernel.func @moments(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 4>, %z: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %t = kernel.local : !kernel.buffer<f32, 8, local>
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = math.tanh %v : f32
      kernel.store %w, %t[i1]
      kernel.yield
    }
    %s = kernel.reduce sum i2 in 0 to 8 {
      %v = kernel.load %t[i2]
      kernel.yield %v
    }
    %c = arith.constant 2.0 : f32
    %q = kernel.reduce sum j0 in 0 to 8 {
      %v = kernel.load %t[j0]
      %w = arith.mulf %v, %v : f32
      %u = arith.mulf %w, %c : f32
      kernel.yield %u
    }
    kernel.store %s, %y[i0]
    kernel.store %q, %z[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @moments(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 4>, %z: !kernel.buffer<f32, 4>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 4 {
// CHECK-NEXT:       %c = arith.constant 2.000000e+00 : f32
// CHECK-NEXT:       %s, %q = kernel.reduce [sum, sum] i1 in 0 to 8 {
// CHECK-NEXT:         %v = kernel.load %x[8*i0 + i1]
// CHECK-NEXT:         %w = math.tanh %v : f32
// CHECK-NEXT:         %w_1 = arith.mulf %w, %w : f32
// CHECK-NEXT:         %u = arith.mulf %w_1, %c : f32
// CHECK-NEXT:         kernel.yield %w, %u
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.store %s, %y[i0]
// CHECK-NEXT:       kernel.store %q, %z[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A row read at another place than it was written needs the whole loop before.

kernel.func @reversed(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  %t = kernel.local : !kernel.buffer<f32, 8, local>
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.store %v, %t[i0]
    kernel.yield
  }
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %t[-i0 + 7]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @reversed(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
// CHECK-NEXT:     %t = kernel.local : !kernel.buffer<f32, 8, local>
// CHECK-NEXT:     kernel.for i0 in 0 to 8 {
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       kernel.store %v, %t[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.for i0 in 0 to 8 {
// CHECK-NEXT:       %v_1 = kernel.load %t[-i0 + 7]
// CHECK-NEXT:       kernel.store %v_1, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A memory that is written behind a read, here the input itself: the order within an iteration is kept.

kernel.func @in_place(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce sum i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  %c = arith.constant 1.0 : f32
  kernel.for i0 in 0 to 8 {
    kernel.store %c, %x[i0]
    kernel.yield
  }
  kernel.store %s, %y[0]
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @in_place(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 1>) {
// CHECK-NEXT:     %c = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %s = kernel.reduce sum i0 in 0 to 8 {
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       kernel.store %c, %x[i0]
// CHECK-NEXT:       kernel.yield %v
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.store %s, %y[0]
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Loops that touch no common buffer stay apart, and so does a reduction with a combination of its own.

kernel.func @apart(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>, %z: !kernel.buffer<f32, 2>) {
  %one = arith.constant 1.0 : f32
  %s = kernel.reduce sum i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  %q = kernel.reduce sum i0 in 0 to 8 {
    %v = kernel.load %y[i0]
    kernel.yield %v
  }
  %p = kernel.reduce custom init(%one) i0 in 0 to 8 {
    %v = kernel.load %y[i0]
    kernel.yield %v
  } combine {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    kernel.yield %c
  }
  kernel.store %s, %z[0]
  kernel.store %q, %z[1]
  kernel.store %p, %z[1]
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @apart(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>, %z: !kernel.buffer<f32, 2>) {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %s = kernel.reduce sum i0 in 0 to 8 {
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       kernel.yield %v
// CHECK-NEXT:     }
// CHECK-NEXT:     %q = kernel.reduce sum i0 in 0 to 8 {
// CHECK-NEXT:       %v_1 = kernel.load %y[i0]
// CHECK-NEXT:       kernel.yield %v_1
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = kernel.reduce custom init(%one) i0 in 0 to 8 {
// CHECK-NEXT:       %v_2 = kernel.load %y[i0]
// CHECK-NEXT:       kernel.yield %v_2
// CHECK-NEXT:     } combine {
// CHECK-NEXT:     ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:       %c = arith.mulf %a, %b : f32
// CHECK-NEXT:       kernel.yield %c
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.store %s, %z[0]
// CHECK-NEXT:     kernel.store %q, %z[1]
// CHECK-NEXT:     kernel.store %p, %z[1]
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Nests: the outer loops meet because the inner ones stay within their block of the row, then the inner ones do.

kernel.func @nests(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 1>) {
  %t = kernel.local : !kernel.buffer<f32, 32, local>
  kernel.for i1 in 0 to 4 {
    kernel.for i2 in 0 to 8 {
      %v = kernel.load %x[8*i1 + i2]
      %w = math.exp %v : f32
      kernel.store %w, %t[8*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  %s = kernel.reduce sum i2 in 0 to 4 {
    %r = kernel.reduce sum i1 in 0 to 8 {
      %v = kernel.load %t[8*i2 + i1]
      kernel.yield %v
    }
    kernel.yield %r
  }
  kernel.store %s, %y[0]
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @nests(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 1>) {
// CHECK-NEXT:     %s = kernel.reduce sum i1 in 0 to 4 {
// CHECK-NEXT:       %r = kernel.reduce sum i2 in 0 to 8 {
// CHECK-NEXT:         %v = kernel.load %x[8*i1 + i2]
// CHECK-NEXT:         %w = math.exp %v : f32
// CHECK-NEXT:         kernel.yield %w
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield %r
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.store %s, %y[0]
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
