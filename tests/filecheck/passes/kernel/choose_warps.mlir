// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 --pipeline schedule | filecheck %s

// Two inputs of 16 bits, 1024 elements a program: 8 for a thread, which one instruction loads.

kernel.func @two(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>, %z: !kernel.buffer<bf16, 33554432>) {
  kernel.for i0 in 0 to 33554432 {
    %a = kernel.load %x[i0]
    %b = kernel.load %y[i0]
    %c = arith.addf %a, %b : bf16
    kernel.store %c, %z[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @two
// CHECK-SAME: num_warps 4

// -----

// What the programs of all rows read comes from the cache: 16 for a thread.

kernel.func @bias(%x: !kernel.buffer<bf16, 33554432>, %t: !kernel.buffer<bf16, 33554432>, %b: !kernel.buffer<bf16, 4096>, %z: !kernel.buffer<bf16, 33554432>) {
  kernel.for i0 in 0 to 8192 {
    kernel.for i1 in 0 to 4096 {
      %a = kernel.load %x[4096*i0 + i1]
      %k = kernel.load %b[i1]
      %c = arith.addf %a, %k : bf16
      %g = kernel.load %t[4096*i0 + i1]
      %d = arith.mulf %c, %g : bf16
      kernel.store %d, %z[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @bias
// CHECK-SAME: num_warps 2

// -----

// Three, and two results: the first result waits until the last input is on its way.

kernel.func @three(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>, %w: !kernel.buffer<bf16, 33554432>, %z: !kernel.buffer<bf16, 33554432>, %o: !kernel.buffer<bf16, 33554432>) {
  kernel.for i0 in 0 to 33554432 {
    %a = kernel.load %x[i0]
    %b = kernel.load %y[i0]
    %c = arith.addf %a, %b : bf16
    kernel.store %c, %z[i0]
    %d = kernel.load %w[i0]
    %e = arith.mulf %c, %d : bf16
    kernel.store %e, %o[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @three
// CHECK-SAME: num_warps 4
// CHECK:        kernel.load %w[i0]
// CHECK-NOT:    kernel.load
// CHECK:        kernel.store %c, %z[i0]
// CHECK-NEXT:   kernel.store %e, %o[i0]

// -----

// What is read back stays behind its store.

kernel.func @back(%x: !kernel.buffer<f32, 33554432>, %y: !kernel.buffer<f32, 33554432>, %z: !kernel.buffer<f32, 33554432>) {
  kernel.for i0 in 0 to 16777216 {
    %a = kernel.load %x[i0]
    kernel.store %a, %z[i0]
    %b = kernel.load %y[i0]
    %c = kernel.load %z[i0 + 16777216]
    %d = arith.addf %b, %c : f32
    kernel.store %d, %z[i0 + 16777216]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @back
// CHECK:        kernel.load %y
// CHECK-NEXT:   kernel.store %a, %z[i0]
// CHECK-NEXT:   kernel.barrier
// CHECK-NEXT:   kernel.load %z

// -----

// 512 programs of 8 warps would leave half of the GPU idle.

kernel.func @few(%x: !kernel.buffer<f32, 16777216>, %y: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 512 {
    %s = kernel.reduce sum r0 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + r0]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @few
// CHECK-SAME: num_warps 16

// -----

// Many keep it busy with few threads each: 2048 elements a step, 16 for a thread.

kernel.func @many(%x: !kernel.buffer<bf16, 268435456>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum r0 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @many
// CHECK-SAME: num_warps 4
// CHECK: map vector tile 2048 unroll 2 {

// -----

// Two sums of pieces of rows, gathered element by element over a loop around them, take registers too.

kernel.func @pieces(%x: !kernel.buffer<bf16, 134217728>, %t: !kernel.buffer<bf16, 134217728>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %s, %q = kernel.reduce [sum, sum] r0 in 0 to 8 {
      %a, %b = kernel.reduce [sum, sum] r1 in 0 to 4096 {
        %v = kernel.load %x[16777216*r0 + 4096*i0 + r1]
        %w = scalar.widen %v : bf16 to f32
        %l = kernel.load %t[16777216*r0 + 4096*i0 + r1]
        %m = scalar.widen %l : bf16 to f32
        %p = arith.mulf %w, %m : f32
        kernel.yield %w, %p
      }
      kernel.yield %a, %b
    }
    kernel.store %s, %y[i0]
    kernel.store %q, %z[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @pieces
// CHECK-SAME: num_warps 16

// -----

// Rows of 128 KiB that are read twice: with 32 warps 264 are read at once, 33 MiB, which is too much for half of the
// cache and helps nothing. With rows of 64 KiB it is 17 MiB, where 8 warps would need 67.

kernel.func @long(%x: !kernel.buffer<bf16, 536870912>, %y: !kernel.buffer<f32, 536870912>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum r0 in 0 to 65536 {
      %v = kernel.load %x[65536*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.for i1 in 0 to 65536 {
      %v = kernel.load %x[65536*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.divf %w, %s : f32
      kernel.store %d, %y[65536*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @long
// CHECK-SAME: num_warps 8
// CHECK: map vector tile 8192 {

// -----

// A thread has 8 elements in a step then.

kernel.func @again(%x: !kernel.buffer<bf16, 268435456>, %y: !kernel.buffer<f32, 268435456>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum r0 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.for i1 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.divf %w, %s : f32
      kernel.store %d, %y[32768*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @again
// CHECK-SAME: num_warps 32
// CHECK: kernel.reduce sum r0 in 0 to 32768 map vector tile 8192 {
// CHECK: kernel.for i1 in 0 to 32768 map vector tile 8192 {

// -----

// Rows of 3136 elements would leave a quarter of 4096 lanes idle: tiles go on from one to the next.

kernel.func @waste(%x: !kernel.buffer<bf16, 51380224>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 256 {
      %s = kernel.reduce sum r0 in 0 to 8 {
        %a = kernel.reduce sum r1 in 0 to 3136 {
          %v = kernel.load %x[6422528*i0 + 802816*r0 + 3136*i1 + r1]
          %w = scalar.widen %v : bf16 to f32
          kernel.yield %w
        }
        kernel.yield %a
      }
      kernel.store %s, %y[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @waste
// CHECK-SAME: num_warps 4
// CHECK: %s = kernel.reduce sum i2 in 0 to 25088 map vector tile 2048 unroll 2 {
// CHECK-NEXT: kernel.load evict_first %x[6422528*i0 + 802816*(i2 floordiv 3136) + 3136*i1 + i2 mod 3136]
// CHECK-NOT: kernel.reduce

// -----

// Loops that read a row again take equal steps, here the smaller one of whole pieces. As many programs run as find
// their 80 KiB in the cache, two for each processor.

kernel.func @group(%x: !kernel.buffer<bf16, 20971520>, %w: !kernel.buffer<f32, 320>, %y: !kernel.buffer<f32, 20971520>) {
  kernel.for i0 in 0 to 16 {
    kernel.for i1 in 0 to 32 {
      %s = kernel.reduce sum r0 in 0 to 40960 {
        %v = kernel.load %x[1310720*i0 + 40960*i1 + r0]
        %f = scalar.widen %v : bf16 to f32
        kernel.yield %f
      }
      kernel.for i2 in 0 to 10 {
        kernel.for i3 in 0 to 4096 {
          %v = kernel.load %x[1310720*i0 + 40960*i1 + 4096*i2 + i3]
          %f = scalar.widen %v : bf16 to f32
          %d = arith.divf %f, %s : f32
          %k = kernel.load %w[10*i1 + i2]
          %o = arith.mulf %d, %k : f32
          kernel.store %o, %y[1310720*i0 + 40960*i1 + 4096*i2 + i3]
          kernel.yield
        }
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @group
// CHECK-SAME: num_warps 16 programs 264
// CHECK: kernel.reduce sum r0 in 0 to 40960 map vector tile 4096 {
// CHECK: kernel.for i2 in 0 to 10 {
// CHECK-NEXT: kernel.for i3 in 0 to 4096 map vector tile 4096 {

// -----

// Warps of few programs that take rows one after the other wait for each other at each row: 16 elements for a thread.

kernel.func @one_by_one(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 256 {
    kernel.for i1 in 32*i0 to 32*i0 + 32 {
      %s = kernel.reduce sum r0 in 0 to 4096 {
        %v = kernel.load %x[4096*i1 + r0]
        %w = scalar.widen %v : bf16 to f32
        kernel.yield %w
      }
      kernel.store %s, %y[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @one_by_one
// CHECK-SAME: num_warps 8

// -----

// What stands beside the nest has a program of its own: those of the nest are one for each row.

kernel.func @group_and_check(%x: !kernel.buffer<bf16, 20971520>, %w: !kernel.buffer<f32, 320>, %y: !kernel.buffer<f32, 20971520>) errors ["ValueError: no"] {
  %one = kernel.load %w[0]
  %fine = arith.cmpf oeq, %one, %one : f32
  kernel.assert %fine, 1
  kernel.for i0 in 0 to 16 {
    kernel.for i1 in 0 to 32 {
      %s = kernel.reduce sum r0 in 0 to 40960 {
        %v = kernel.load %x[1310720*i0 + 40960*i1 + r0]
        %f = scalar.widen %v : bf16 to f32
        kernel.yield %f
      }
      kernel.for i2 in 0 to 10 {
        kernel.for i3 in 0 to 4096 {
          %v = kernel.load %x[1310720*i0 + 40960*i1 + 4096*i2 + i3]
          %f = scalar.widen %v : bf16 to f32
          %d = arith.divf %f, %s : f32
          %k = kernel.load %w[10*i1 + i2]
          %o = arith.mulf %d, %k : f32
          kernel.store %o, %y[1310720*i0 + 40960*i1 + 4096*i2 + i3]
          kernel.yield
        }
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @group_and_check
// CHECK-SAME: num_warps 32 {
// CHECK-NEXT: %one = kernel.load

// -----

// The columns that a program keeps are few threads' matter; moments have four steps of 32 bytes a thread on their way.

kernel.func @columns(%x: !kernel.buffer<f32, 33554432>, %y: !kernel.buffer<f32, 33554432>) {
  kernel.for i0 in 0 to 256 {
    kernel.for i1 in 0 to 1024 {
      %l = kernel.local : !kernel.buffer<f32, 128, local>
      %s = kernel.reduce sum r0 in 0 to 128 {
        %v = kernel.load %x[131072*i0 + 1024*r0 + i1]
        %e = math.exp %v : f32
        kernel.store %e, %l[r0]
        kernel.yield %e
      }
      kernel.for i2 in 0 to 128 {
        %e = kernel.load %l[i2]
        %q = arith.divf %e, %s : f32
        kernel.store %q, %y[131072*i0 + 1024*i2 + i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @moments(%x: !kernel.buffer<f32, 12845056>, %y: !kernel.buffer<f32, 32768>, %z: !kernel.buffer<f32, 32768>) {
  kernel.for i0 in 0 to 128 {
    kernel.for i1 in 0 to 256 {
      %s, %m, %q, %c = kernel.reduce [sum, welford] r0 in 0 to 392 {
        %v = kernel.load %x[100352*i0 + 256*r0 + i1]
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1.0 : f32
        kernel.yield %v, %v, %zero, %one
      }
      kernel.store %s, %y[256*i0 + i1]
      kernel.store %q, %z[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @columns
// CHECK-SAME: num_warps 2
// CHECK-LABEL: kernel.func @moments
// CHECK-SAME: num_warps 2
// CHECK: map vector tile 16 unroll 4 {

// -----

// Where enough lanes look up the same table, each goes through it for itself; where there are few, many share one.

kernel.func @search(%x: !kernel.buffer<f32, 1048576>, %t: !kernel.buffer<f32, 64>, %y: !kernel.buffer<i64, 1048576>) {
  kernel.for i0 in 0 to 1048576 {
    %v = kernel.load %x[i0]
    %s = kernel.reduce sum r0 in 0 to 64 {
      %b = kernel.load %t[r0]
      %c = arith.cmpf olt, %b, %v : f32
      %n = arith.extui %c : i1 to i64
      kernel.yield %n
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @few_searches(%x: !kernel.buffer<f32, 4096>, %t: !kernel.buffer<f32, 64>, %y: !kernel.buffer<i64, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %s = kernel.reduce sum r0 in 0 to 64 {
      %b = kernel.load %t[r0]
      %c = arith.cmpf olt, %b, %v : f32
      %n = arith.extui %c : i1 to i64
      kernel.yield %n
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @search
// CHECK: kernel.for i0 in 0 to 1048576 map grid tile 512
// CHECK: kernel.reduce sum r0 in 0 to 64 {
// CHECK-LABEL: kernel.func @few_searches
// CHECK: kernel.reduce sum r0 in 0 to 64 map vector tile 64 {

// -----

// A row that the second nest keeps is one tile, whatever the steps of the sums in the first one.

kernel.func @sums_and_shares(%x: !kernel.buffer<bf16, 33554432>, %s: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 33554432>) {
  kernel.for i0 in 0 to 8192 {
    %t = kernel.reduce sum r0 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.store %t, %s[i0]
    kernel.yield
  }
  kernel.for i1 in 0 to 8192 {
    %t = kernel.reduce sum r0 in 0 to 4096 {
      %v = kernel.load %x[4096*i1 + r0]
      %w = scalar.widen %v : bf16 to f32
      %e = math.exp %w : f32
      kernel.yield %e
    }
    kernel.for i2 in 0 to 4096 {
      %v = kernel.load %x[4096*i1 + i2]
      %w = scalar.widen %v : bf16 to f32
      %q = arith.divf %w, %t : f32
      kernel.store %q, %y[4096*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @sums_and_shares
// CHECK: kernel.reduce sum r0 in 0 to 4096 map vector tile 2048 {
// CHECK: kernel.reduce sum r0 in 0 to 4096 map vector tile 4096 {
// CHECK: kernel.for i2 in 0 to 4096 map vector tile 4096 {

// -----

// What adds up products of two rows has a thread for each vector of them; a divisor of a row, prepared by each thread,
// wants more elements of it.

kernel.func @products(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>, %z: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum r0 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + r0]
      %w = kernel.load %y[4096*i0 + r0]
      %a = scalar.widen %v : bf16 to f32
      %b = scalar.widen %w : bf16 to f32
      %c = arith.mulf %a, %b : f32
      kernel.yield %c
    }
    kernel.store %s, %z[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @quotients(%x: !kernel.buffer<bf16, 33554432>, %n: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 33554432>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum r0 in 0 to 4096 {
      %d = kernel.load %n[i0]
      %v = kernel.load %x[4096*i0 + r0]
      %a = scalar.widen %v : bf16 to f32
      %b = arith.divf %a, %d : f32
      %c = arith.divf %b, %d : f32
      kernel.yield %c
    }
    kernel.for i1 in 0 to 4096 {
      %d = kernel.load %n[i0]
      %v = kernel.load %x[4096*i0 + i1]
      %a = scalar.widen %v : bf16 to f32
      %b = arith.divf %a, %d : f32
      %c = arith.divf %b, %s : f32
      kernel.store %c, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @products
// CHECK-SAME: num_warps 16
// CHECK: kernel.reduce sum r0 in 0 to 4096 map vector tile 4096 {
// CHECK-LABEL: kernel.func @quotients
// CHECK-SAME: num_warps 4
// CHECK: kernel.for i1 in 0 to 4096 map vector tile 4096 {
