// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 --pipeline schedule | filecheck %s

// One long axis: programs of 1024 elements.

kernel.func @add1d(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) {
  kernel.for i0 in 0 to 1048576 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @add1d
// CHECK-SAME: target "cuda:90" num_warps 8
// CHECK-NEXT: kernel.for i0 in 0 to 1048576 map grid tile 1024

// -----

// Both operands of a transpose are read along lines.

kernel.func @transpose(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 4194304>) {
  kernel.for i0 in 0 to 2048 {
    kernel.for i1 in 0 to 2048 {
      %v = kernel.load %x[i0 + 2048*i1]
      kernel.store %v, %y[2048*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @transpose
// CHECK: kernel.for i0 in 0 to 2048 map grid tile 32
// CHECK-NEXT: kernel.for i1 in 0 to 2048 map grid tile 32

// -----

// A weight of 3x3 points whose channels come to lie side by side: all nine points of enough channels are a tile. With an
// axis of few elements it pays less.

kernel.func @weight(%x: !kernel.buffer<f32, 589824>, %y: !kernel.buffer<f32, 589824>) {
  kernel.for i0 in 0 to 256 {
    kernel.for i2 in 0 to 9 {
      kernel.for i1 in 0 to 256 {
        %v = kernel.load %x[2304*i0 + 9*i1 + i2]
        kernel.store %v, %y[2304*i0 + 256*i2 + i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @narrow(%x: !kernel.buffer<f32, 393216>, %y: !kernel.buffer<f32, 393216>) {
  kernel.for i0 in 0 to 256 {
    kernel.for i2 in 0 to 3 {
      kernel.for i1 in 0 to 512 {
        %v = kernel.load %x[1536*i0 + 3*i1 + i2]
        kernel.store %v, %y[1536*i0 + 512*i2 + i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @weight
// CHECK: kernel.for i0 in 0 to 256 map grid {
// CHECK-NEXT: kernel.for i2 in 0 to 9 map grid tile 16
// CHECK-NEXT: kernel.for i1 in 0 to 256 map grid tile 64
// CHECK-LABEL: @narrow
// CHECK: kernel.for i1 in 0 to 512 map grid tile 512

// -----

// A row that fits stays in registers: one program a row, the local buffer a register tile.

kernel.func @softmax(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 4194304>) {
  kernel.for i0 in 0 to 1024 {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %m = kernel.reduce max i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      kernel.yield %v
    }
    %s = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 4096 {
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @softmax
// CHECK-SAME: num_warps 8
// CHECK-NEXT: kernel.for i0 in 0 to 1024 map grid {
// CHECK-NEXT: kernel.local
// CHECK-NEXT: kernel.reduce max i1 in 0 to 4096 map vector tile 4096
// CHECK: kernel.reduce sum i1 in 0 to 4096 map vector tile 4096
// CHECK: kernel.for i1 in 0 to 4096 map vector tile 4096

// -----

// One that does not fit: maximum and sum in one pass, and the exponentials computed again for the output.

kernel.func @long_softmax(%x: !kernel.buffer<f32, 32768000>, %y: !kernel.buffer<f32, 32768000>) {
  kernel.for i0 in 0 to 1024 {
    %row = kernel.local : !kernel.buffer<f32, 32000, local>
    %m = kernel.reduce max i1 in 0 to 32000 {
      %v = kernel.load %x[32000*i0 + i1]
      kernel.yield %v
    }
    %s = kernel.reduce sum i1 in 0 to 32000 {
      %v = kernel.load %x[32000*i0 + i1]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 32000 {
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[32000*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @long_softmax
// CHECK-NOT: kernel.local
// CHECK: %[[M:.*]], %[[T:.*]] = kernel.reduce logsumexp i1 in 0 to 32000 map vector tile 8192
// CHECK: %[[Z:.*]] = arith.subf %[[M]], %[[M]]
// CHECK-NEXT: arith.addf %[[T]], %[[Z]]
// CHECK-NOT: kernel.reduce
// CHECK: kernel.for i1 in 0 to 32000 map vector tile 8192
// CHECK: math.exp
// CHECK: kernel.store

// -----

// Sums of columns: lanes along a row, several rows a step.

kernel.func @column_sum(%x: !kernel.buffer<f32, 67108864>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 2048 {
    %s = kernel.reduce sum i1 in 0 to 32768 {
      %v = kernel.load %x[i0 + 2048*i1]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @column_sum
// Cache lines of columns would leave half of the processors without a program: sectors of them do not.
// CHECK: kernel.for i0 in 0 to 2048 map grid tile 8
// CHECK-NEXT: kernel.reduce sum i1 in 0 to 32768 map vector tile 256

// -----

// Of many programs each takes few rows a step, fewer still where one warp keeps moments.

kernel.func @many_sums(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<f32, 131072>) {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to 4096 {
      %s = kernel.reduce sum i2 in 0 to 256 {
        %0 = kernel.load %x[1048576*i0 + 4096*i2 + i1]
        %1 = arith.extf %0 : bf16 to f32
        kernel.yield %1
      }
      kernel.store %s, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @many_variances(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<f32, 131072>) {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to 4096 {
      %n, %v, %k = kernel.reduce welford i2 in 0 to 256 {
        %0 = kernel.load %x[1048576*i0 + 4096*i2 + i1]
        %1 = arith.extf %0 : bf16 to f32
        %z = arith.constant 0.0 : f32
        %o = arith.constant 1.0 : f32
        kernel.yield %1, %z, %o
      }
      kernel.store %v, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @many_sums
// CHECK: kernel.reduce sum i2 in 0 to 256 map vector tile 8 unroll 2
// CHECK-LABEL: @many_variances
// CHECK: kernel.reduce welford i2 in 0 to 256 map vector tile 4 unroll 4

// -----

// Short windows: every lane runs its own.

kernel.func @pool(%x: !kernel.buffer<f32, 262144>, %y: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 256 {
    kernel.for i1 in 0 to 256 {
      %m = kernel.reduce max i2 in 0 to 2 {
        %n = kernel.reduce max i3 in 0 to 2 {
          %v = kernel.load %x[1024*i0 + 2*i1 + 512*i2 + i3]
          kernel.yield %v
        }
        kernel.yield %n
      }
      kernel.store %m, %y[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @pool
// CHECK: kernel.for i1 in 0 to 256 map grid tile
// CHECK: kernel.reduce max i2 in 0 to 2 {
// CHECK-NEXT: kernel.reduce max i3 in 0 to 2 {

// -----

// What a running sum stores for later goes through memory that the program allocates.

kernel.func @share(%x: !kernel.buffer<f32, 98304>, %y: !kernel.buffer<f32, 98304>) {
  kernel.for i0 in 0 to 3 {
    %row = kernel.local : !kernel.buffer<f32, 32768, local>
    kernel.scan sum i1 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + i1]
      kernel.yield %v
    } then {
    ^bb0(%c: f32):
      kernel.store %c, %row[i1]
      kernel.yield
    }
    %m = kernel.reduce max i1 in 0 to 32768 {
      %v = kernel.load %row[i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 32768 {
      %v = kernel.load %row[i1]
      %q = arith.divf %v, %m : f32
      kernel.store %q, %y[32768*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @f(%x: !aten.tensor<3x32768xf32, device = "cuda:0">) -> (!aten.tensor<3x32768xf32, device = "cuda:0">) symbols [] {
  %y = host.empty : !aten.tensor<3x32768xf32, device = "cuda:0">
  host.launch @share(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @share
// CHECK-SAME: %row: !kernel.buffer<f32, 98304>
// CHECK-NOT: kernel.local
// CHECK: kernel.store %{{.*}}, %row[32768*i0 + i1]
// CHECK-LABEL: host.func @f
// CHECK: %[[S:.*]] = host.empty : !aten.tensor<98304xf32, device = "cuda:0">
// CHECK-NEXT: host.launch @share(%x, %y, %[[S]])

// -----

// Products cannot be combined in a GPU's memory, so one program runs all; sums can.

kernel.func @products(%x: !kernel.buffer<f32, 4096>, %i: !kernel.buffer<i64, 4096>, %y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %j = kernel.load %i[i0]
    kernel.store mul atomic %v, %y[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}
kernel.func @sums(%x: !kernel.buffer<f32, 4096>, %i: !kernel.buffer<i64, 4096>, %y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %j = kernel.load %i[i0]
    kernel.store add atomic %v, %y[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @products
// CHECK: kernel.for i0 in 0 to 4096 {
// CHECK: kernel.store mul %
// CHECK-LABEL: @sums
// CHECK: kernel.for i0 in 0 to 4096 map grid tile 128
// CHECK: kernel.store add atomic

// -----

// Of a long row nothing is kept but a number: steps of 2048 elements, the next one on its way while one is added up.

kernel.func @narrow(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @narrow
// CHECK-SAME: warps 4
// CHECK: kernel.reduce sum i1 in 0 to 4096 map vector tile 2048 {

// -----

// A counter that the nest reads and the kernel advances: programs of a nest would read it at any time, before or after
// one of them has written it. One program does all.

kernel.func @advance(%n: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 8192>) {
  %step = arith.constant 1.0 : f32
  %old = kernel.load %n[0]
  %new = arith.addf %old, %step : f32
  kernel.for i0 in 0 to 8192 {
    %v = kernel.load %x[i0]
    %w = arith.mulf %v, %new : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.store %new, %n[0]
  kernel.yield
}

// CHECK-LABEL: @advance
// CHECK-NOT: map grid
// CHECK: kernel.for i0 in 0 to 8192 map vector
// CHECK-NOT: map grid

// -----

// Nothing writes what the nest needs: the store has a program of its own.

kernel.func @beside(%n: !kernel.buffer<f32, 1>, %m: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 8192>) {
  %step = arith.constant 1.0 : f32
  %old = kernel.load %n[0]
  %new = arith.addf %old, %step : f32
  kernel.for i0 in 0 to 8192 {
    %v = kernel.load %x[i0]
    %w = arith.mulf %v, %new : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.store %new, %m[0]
  kernel.yield
}

// CHECK-LABEL: @beside
// CHECK: kernel.for i0 in 0 to 8192 map grid

// -----

// Two rows share a mean, whose loop moves into theirs: its axis has the name of theirs and gets another one.

kernel.func @moved(%x: !kernel.buffer<f32, 560>, %y: !kernel.buffer<f32, 560>) {
  kernel.for i0 in 0 to 8 {
    %m = kernel.reduce sum i1 in 0 to 70 {
      %v = kernel.load %x[70*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 2 {
      %d = kernel.reduce sum i2 in 0 to 35 {
        %v = kernel.load %x[70*i0 + 35*i1 + i2]
        kernel.yield %v
      }
      kernel.for i2 in 0 to 35 {
        %v = kernel.load %x[70*i0 + 35*i1 + i2]
        %w = arith.subf %v, %m : f32
        %u = arith.subf %w, %d : f32
        kernel.store %u, %y[70*i0 + 35*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @moved
// CHECK: kernel.for i1 in 0 to 2 map grid
// CHECK-NEXT: kernel.reduce sum i3 in 0 to 70
// CHECK-NEXT: kernel.load %x[70*i0 + i3]

// -----

// Running sums of columns: a program has as few columns as fill a sector, so that there are enough programs, and walks
// down in tiles of many steps.

kernel.func @running_sums(%x: !kernel.buffer<bf16, 16777216>, %y: !kernel.buffer<bf16, 16777216>) {
  kernel.for i0 in 0 to 4096 {
    kernel.scan sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i1 + i0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    } then {
    ^bb0(%c: f32):
      %n = scalar.narrow %c : f32 to bf16
      kernel.store %n, %y[4096*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @running_sums
// CHECK-SAME: num_warps 4
// CHECK-NEXT: kernel.for i0 in 0 to 4096 map grid tile 16 {
// CHECK-NEXT: kernel.scan sum i1 in 0 to 4096 map vector tile 256 {

// -----

// A scan of a scan goes through memory, in which columns lie side by side as well.

kernel.func @twice(%x: !kernel.buffer<f32, 16777216>, %y: !kernel.buffer<f32, 16777216>) {
  kernel.for i0 in 0 to 4096 {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    kernel.scan sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i1 + i0]
      kernel.yield %v
    } then {
    ^bb0(%c: f32):
      kernel.store %c, %row[i1]
      kernel.yield
    }
    kernel.scan sum i1 in 0 to 4096 {
      %v = kernel.load %row[i1]
      kernel.yield %v
    } then {
    ^bb0(%c: f32):
      kernel.store %c, %y[4096*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @twice
// CHECK-SAME: %row: !kernel.buffer<f32, 16777216>
// CHECK: kernel.store %c, %row[4096*i1 + i0]
// CHECK: kernel.load %row[4096*i1 + i0]

// -----

// Three vectors times a matrix, as sums over its rows: a program reads a row once for all of them.

kernel.func @vectors(%x: !kernel.buffer<bf16, 6144>, %w: !kernel.buffer<bf16, 4194304>, %y: !kernel.buffer<bf16, 6144>) {
  kernel.for i0 in 0 to 3 {
    kernel.for i1 in 0 to 2048 {
      %s = kernel.reduce sum i2 in 0 to 2048 {
        %v = kernel.load %x[2048*i0 + i2]
        %a = scalar.widen %v : bf16 to f32
        %u = kernel.load %w[2048*i1 + i2]
        %b = scalar.widen %u : bf16 to f32
        %p = arith.mulf %a, %b : f32
        kernel.yield %p
      }
      %n = scalar.narrow %s : f32 to bf16
      kernel.store %n, %y[2048*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @vectors
// CHECK-SAME: num_warps 4
// CHECK: kernel.for i1 in 0 to 2048 map grid {
// CHECK: kernel.for i0 in 0 to 3 map grid tile 4 {
// CHECK: kernel.reduce sum i2 in 0 to 2048 map vector tile 2048 {

// -----

// A short sum that each lane does for itself, of so few columns that its loads are on their way together.

kernel.func @short(%x: !kernel.buffer<f32, 32768>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to 64 {
      %s = kernel.reduce sum i2 in 0 to 16 {
        %v = kernel.load %x[1024*i0 + 64*i2 + i1]
        kernel.yield %v
      }
      kernel.store %s, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @short
// CHECK: map grid tile 2 {
// CHECK: map grid tile 64 {
// CHECK: kernel.reduce sum i2 in 0 to 16 map serial unroll 8 {

// -----

// One vector times a matrix: programs read 8 KiB of its rows at least, and the vector once.

kernel.func @vector(%x: !kernel.buffer<bf16, 2048>, %w: !kernel.buffer<i8, 67108864>, %y: !kernel.buffer<bf16, 32768>) {
  kernel.for i0 in 0 to 32768 {
    %s = kernel.reduce sum i1 in 0 to 2048 {
      %v = kernel.load %x[i1]
      %a = scalar.widen %v : bf16 to f32
      %u = kernel.load %w[2048*i0 + i1]
      %b = scalar.cast %u : i8 to f32
      %p = arith.mulf %a, %b : f32
      kernel.yield %p
    }
    %n = scalar.narrow %s : f32 to bf16
    kernel.store %n, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @vector
// CHECK-SAME: num_warps 4
// CHECK: kernel.for i0 in 0 to 32768 map grid tile 4 {
// CHECK-NEXT: kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 {

// -----

// The same for numbers of 4 bits, of which a byte has two, with a number for each group of 128.

kernel.func @digits(%x: !kernel.buffer<bf16, 2048>, %w: !kernel.buffer<ui8, 33554432>, %s: !kernel.buffer<bf16, 524288>, %y: !kernel.buffer<bf16, 32768>) {
  kernel.for i0 in 0 to 32768 {
    %t = kernel.reduce sum i1 in 0 to 1024 {
      %u = kernel.load %x[2*i1]
      %v = kernel.load %x[2*i1 + 1]
      %b = kernel.load %w[1024*i0 + i1]
      %f = arith.constant 15 : i8
      %l = arith.andi %b, %f : i8
      %four = arith.constant 4 : i8
      %h = arith.shrui %b, %four : i8
      %lf = scalar.cast %l : ui8 to f32
      %hf = scalar.cast %h : ui8 to f32
      %uf = scalar.widen %u : bf16 to f32
      %vf = scalar.widen %v : bf16 to f32
      %c = kernel.load %s[16*i0 + i1 floordiv 64]
      %k = scalar.widen %c : bf16 to f32
      %p = arith.mulf %uf, %lf : f32
      %q = arith.mulf %vf, %hf : f32
      %r = arith.addf %p, %q : f32
      %z = arith.mulf %r, %k : f32
      kernel.yield %z
    }
    %n = scalar.narrow %t : f32 to bf16
    kernel.store %n, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @digits
// CHECK-SAME: num_warps 4
// CHECK: kernel.for i0 in 0 to 32768 map grid tile 8 {
// CHECK-NEXT: kernel.reduce sum i1 in 0 to 1024 map vector tile 1024 {
