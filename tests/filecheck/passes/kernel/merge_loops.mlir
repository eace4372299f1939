// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-merge-loops | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-merge-loops | filecheck %s --check-prefix=GPU

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

// CHECK-LABEL: kernel.func @softmax
// CHECK: %s = kernel.reduce sum i1 in 0 to 4096 {
// CHECK: kernel.store %w, %e[i1]
// CHECK-NEXT: kernel.yield %w

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

// CHECK-LABEL: kernel.func @moments
// CHECK: %c = arith.constant 2.000000e+00 : f32
// CHECK-NEXT: %s, %q = kernel.reduce [sum, sum] i1 in 0 to 8 {
// CHECK: %w = math.tanh %v : f32
// CHECK-NEXT: %w_1 = arith.mulf %w, %w : f32

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

// CHECK-LABEL: kernel.func @reversed
// CHECK-NEXT: %t = kernel.local : !kernel.buffer<f32, 8, local>
// CHECK-NEXT: kernel.for i0 in 0 to 8 {
// CHECK-NEXT: %v = kernel.load %x[i0]
// CHECK-NEXT: kernel.store %v, %t[i0]
// CHECK: kernel.for i0 in 0 to 8 {
// CHECK-NEXT: %v_1 = kernel.load %t[-i0 + 7]
// CHECK-NEXT: kernel.store %v_1, %y[i0]

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

// CHECK-LABEL: kernel.func @in_place
// CHECK-NEXT: %c = arith.constant 1.000000e+00 : f32
// CHECK: kernel.store %c, %x[i0]
// CHECK-NEXT: kernel.yield %v
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

// CHECK-LABEL: kernel.func @apart
// CHECK: %s = kernel.reduce sum i0 in 0 to 8 {
// CHECK: %q = kernel.reduce sum i0 in 0 to 8 {
// CHECK: %p = kernel.reduce custom init(%one) i0 in 0 to 8 {

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

// CHECK-LABEL: kernel.func @nests
// CHECK-NEXT: %s = kernel.reduce sum i1 in 0 to 4 {
// CHECK-NEXT: %r = kernel.reduce sum i2 in 0 to 8 {
// CHECK-NEXT: %v = kernel.load %x[8*i1 + i2]
// CHECK-NEXT: %w = math.exp %v : f32
// CHECK-NEXT: kernel.yield %w

// -----

// What is in front of a running sum is part of its body, the rounding behind it is done where the running value is.

kernel.func @running_sum(%x: !kernel.buffer<bf16, 8*s0>, %y: !kernel.buffer<bf16, 8*s0>, %z: !kernel.buffer<bf16, 8*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %doubled = kernel.local : !kernel.buffer<f32, 8, local>
    %row = kernel.local : !kernel.buffer<f32, 8, local>
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.addf %w, %w : f32
      %n = scalar.narrow %d : f32 to bf16
      kernel.store %n, %y[8*i0 + i1]
      kernel.store %d, %doubled[i1]
      kernel.yield
    }
    kernel.scan sum i2 in 0 to 8 {
      %v = kernel.load %doubled[i2]
      kernel.yield %v
    } then {
    ^bb0(%c: f32):
      kernel.store %c, %row[i2]
      kernel.yield
    }
    kernel.for i3 in 0 to 8 {
      %c = kernel.load %row[i3]
      %n = scalar.narrow %c : f32 to bf16
      kernel.store %n, %z[8*i0 + i3]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @running_sum
// CHECK-NEXT: kernel.for i0 in 0 to s0 {
// CHECK-NEXT: kernel.scan sum i1 in 0 to 8 {
// CHECK: kernel.store %n, %y[8*i0 + i1]
// CHECK-NEXT: kernel.yield %d
// CHECK-NEXT: } then {
// CHECK-NEXT: ^bb{{[0-9]+}}(%c: f32):
// CHECK-NEXT: %n_1 = scalar.narrow %c : f32 to bf16
// CHECK-NEXT: kernel.store %n_1, %z[8*i0 + i1]
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NOT: kernel.for

// -----

// Two scans are one with two combiners; the maximum needs all running values. A function is left to the lanes of a CPU.

kernel.func @functions(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>, %m: !kernel.buffer<f32, 1>) {
  %a = kernel.local : !kernel.buffer<f32, 8, local>
  %b = kernel.local : !kernel.buffer<f32, 8, local>
  kernel.scan sum i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  } then {
  ^bb0(%c: f32):
    kernel.store %c, %a[i0]
    kernel.yield
  }
  kernel.scan prod i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  } then {
  ^bb0(%c: f32):
    kernel.store %c, %b[i0]
    kernel.yield
  }
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %a[i0]
    %w = kernel.load %b[i0]
    %e = math.exp %v : f32
    %s = arith.addf %e, %w : f32
    kernel.store %s, %y[i0]
    kernel.yield
  }
  %r = kernel.reduce max i0 in 0 to 8 {
    %v = kernel.load %y[i0]
    kernel.yield %v
  }
  kernel.store %r, %m[0]
  kernel.yield
}

// CHECK-LABEL: kernel.func @functions
// CHECK: kernel.scan [sum, prod] i0 in 0 to 8 {
// CHECK-NOT: math.exp
// CHECK: kernel.reduce max i0 in 0 to 8 {
// CHECK: math.exp
// GPU-LABEL: kernel.func @functions
// GPU: kernel.scan [sum, prod] i0 in 0 to 8 {
// GPU: ^bb{{[0-9]+}}(%c: f32, %c_1: f32):
// GPU-NEXT: %e = math.exp %c : f32
// GPU-NEXT: %s = arith.addf %e, %c_1 : f32
// GPU-NEXT: kernel.store %s, %y[i0]
// GPU: kernel.reduce max i0 in 0 to 8 {
// GPU-NOT: kernel.for

// -----

// A scan of running values comes after the scan that they come from.

kernel.func @chain(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  %row = kernel.local : !kernel.buffer<f32, 8, local>
  kernel.scan sum i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  } then {
  ^bb0(%c: f32):
    kernel.store %c, %row[i0]
    kernel.yield
  }
  kernel.scan sum i0 in 0 to 8 {
    %v = kernel.load %row[i0]
    kernel.yield %v
  } then {
  ^bb0(%c: f32):
    kernel.store %c, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// GPU-LABEL: kernel.func @chain
// GPU: kernel.scan sum
// GPU: kernel.scan sum

// -----

// Two sums of rows that the last loop both reads: on a GPU one reduction, whose loads are on their way together.

kernel.func @cosine(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>, %o: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %a = kernel.reduce sum i1 in 0 to 512 {
      %v = kernel.load %x[512*i0 + i1]
      kernel.yield %v
    }
    %c = math.sqrt %a : f32
    %b = kernel.reduce sum i1 in 0 to 512 {
      %v = kernel.load %y[512*i0 + i1]
      kernel.yield %v
    }
    %n = kernel.reduce max i1 in 0 to 512 {
      %v = kernel.load %z[512*i0 + i1]
      kernel.yield %v
    }
    %d = arith.mulf %c, %b : f32
    %s = kernel.reduce sum i1 in 0 to 512 {
      %v = kernel.load %x[512*i0 + i1]
      %w = kernel.load %y[512*i0 + i1]
      %p = arith.mulf %v, %w : f32
      %q = arith.divf %p, %d : f32
      kernel.yield %q
    }
    %t = arith.addf %s, %n : f32
    kernel.store %t, %o[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @cosine
// CHECK-COUNT-4: kernel.reduce
// GPU-LABEL: @cosine
// GPU: kernel.reduce [sum, sum] i1
// GPU: kernel.reduce max
// GPU: kernel.reduce sum

// -----

// Two loops behind one that writes a row for each: on a GPU one, for rows that do not fit are computed again in both.

kernel.func @siblings(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 8 {
    %a = kernel.local : !kernel.buffer<f32, 512, local>
    %b = kernel.local : !kernel.buffer<f32, 512, local>
    %s, %t = kernel.reduce [sum, sum] i1 in 0 to 512 {
      %v = kernel.load %x[512*i0 + i1]
      %e = math.exp %v : f32
      %l = math.log %v : f32
      kernel.store %e, %a[i1]
      kernel.store %l, %b[i1]
      kernel.yield %e, %l
    }
    kernel.for i1 in 0 to 512 {
      %v = kernel.load %a[i1]
      %d = arith.divf %v, %s : f32
      kernel.store %d, %y[512*i0 + i1]
      kernel.yield
    }
    kernel.for i1 in 0 to 512 {
      %v = kernel.load %b[i1]
      %d = arith.divf %v, %t : f32
      kernel.store %d, %z[512*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @siblings
// CHECK-COUNT-2: kernel.for i1
// GPU-LABEL: @siblings
// GPU-COUNT-1: kernel.for i1
// GPU-NOT: kernel.for i1

// -----

// Images of any size: rows of s0 points are apart, since a point is less than s0, which is more than 0 then.

kernel.func @image(%x: !kernel.buffer<f32, 8*s0*s0>, %y: !kernel.buffer<f32, 8*s0*s0>, %z: !kernel.buffer<f32, 8>) symbols (s0) {
  kernel.for i0 in 0 to 8 {
    %row = kernel.local : !kernel.buffer<f32, s0*s0, local>
    kernel.for i1 in 0 to s0 {
      kernel.for i2 in 0 to s0 {
        %v = kernel.load %x[i0*s0*s0 + i1*s0 + i2]
        %e = math.exp %v : f32
        kernel.store %e, %y[i0*s0*s0 + i1*s0 + i2]
        kernel.store %e, %row[i1*s0 + i2]
        kernel.yield
      }
      kernel.yield
    }
    %s = kernel.reduce sum i1 in 0 to s0 {
      %t = kernel.reduce sum i2 in 0 to s0 {
        %v = kernel.load %row[i1*s0 + i2]
        kernel.yield %v
      }
      kernel.yield %t
    }
    kernel.store %s, %z[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @image
// CHECK-NOT: kernel.local
// CHECK: kernel.reduce sum i1
// CHECK-NEXT: kernel.reduce sum i2
// CHECK-NOT: kernel.for

// -----

// One sum goes along the rows of x, the other one across: on a CPU each has lanes along memory, and a cache keeps x.

builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp">} {
kernel.func @across(%x: !kernel.buffer<f32, 32768>, %y: !kernel.buffer<f32, 512>, %z: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 64 {
      %s = kernel.reduce sum i2 in 0 to 64 { %v = kernel.load %x[4096*i0 + 64*i1 + i2]  kernel.yield %v }
      kernel.store %s, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 64 {
      %s = kernel.reduce sum i2 in 0 to 64 { %v = kernel.load %x[4096*i0 + i1 + 64*i2]  kernel.yield %v }
      kernel.store %s, %z[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
}

// CHECK-LABEL: kernel.func @across
// CHECK:         kernel.for i0 in 0 to 8 {
// CHECK-NEXT:      kernel.for i1 in 0 to 64 {
// CHECK:             kernel.store %{{.*}}, %y
// CHECK-NEXT:        kernel.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      kernel.for i1 in 0 to 64 {
// GPU-LABEL: @across
// GPU:         kernel.reduce [sum, sum] i2
