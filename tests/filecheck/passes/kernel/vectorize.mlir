// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-map,kernel-vectorize | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-map,kernel-vectorize | filecheck %s --check-prefix=GPU

// Rows: lanes along the inner axis, with four registers of accumulators on a CPU. A GPU's tiles are chosen later.

kernel.func @rows(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 1024 {
    %m = kernel.reduce max i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      kernel.yield %v
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @rows
// CHECK-NEXT: kernel.for i0 in 0 to 1024 map parallel {
// CHECK-NEXT: kernel.reduce max i1 in 0 to 4096 map vector tile 64 {
// GPU-LABEL: @rows
// GPU-NEXT: kernel.for i0 in 0 to 1024 map grid {
// GPU-NEXT: kernel.reduce max i1 in 0 to 4096 map vector {

// -----

// Columns: lanes of a CPU are several columns, each with a loop of its own, and of a GPU rows of columns.

kernel.func @columns(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %m = kernel.reduce max i1 in 0 to 1024 {
      %v = kernel.load %x[4096*i1 + i0]
      kernel.yield %v
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @columns
// CHECK-NEXT: kernel.for i0 in 0 to 4096 map vector tile 64 {
// CHECK-NEXT: kernel.reduce max i1 in 0 to 1024 {
// GPU-LABEL: @columns
// GPU-NEXT: kernel.for i0 in 0 to 4096 map grid tile 32 {
// GPU-NEXT: kernel.reduce max i1 in 0 to 1024 map vector {

// -----

// The axis along which accesses lie side by side goes inside.

kernel.func @across(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %v = kernel.load %x[64*i1 + i0]
      kernel.store %v, %y[64*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_across(%x: !aten.tensor<4096xf32, device = "cuda:0">, %y: !aten.tensor<4096xf32, device = "cuda:0">) -> (!aten.tensor<4096xf32, device = "cuda:0">) {
  host.launch @across(%x, %y)
  host.return %y
}

// CHECK-LABEL: @across
// CHECK-NEXT: kernel.for i1 in 0 to 64 map parallel {
// CHECK-NEXT: kernel.for i0 in 0 to 64 map vector tile 16 {

// -----

// Each lane of a GPU runs a short loop for itself, written out.

kernel.func @window(%x: !kernel.buffer<f32, 40960>, %y: !kernel.buffer<f32, 10240>) {
  kernel.for i0 in 0 to 10240 {
    %m = kernel.local : !kernel.buffer<f32, 4, local>
    kernel.for i1 in 0 to 4 {
      %v = kernel.load %x[10240*i1 + i0]
      kernel.store %v, %m[i1]
      kernel.yield
    }
    %s = kernel.reduce sum i2 in 0 to 4 {
      %v = kernel.load %m[i2]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// GPU-LABEL: @window
// GPU: kernel.for i1 in 0 to 4 map unroll {
// GPU: kernel.reduce sum i2 in 0 to 4 {

// -----

// Nothing says that a combination of the program's own commutes.

kernel.func @own(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %zero = arith.constant 0.0 : f32
    %m = kernel.reduce custom init(%zero) i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    } combine {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      kernel.yield %c
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run_own(%x: !aten.tensor<4096xf32, device = "cuda:0">, %y: !aten.tensor<64xf32, device = "cuda:0">) -> (!aten.tensor<64xf32, device = "cuda:0">) {
  host.launch @own(%x, %y)
  host.return %y
}

// CHECK-LABEL: @own
// CHECK: kernel.reduce custom init(%{{.*}}) i1 in 0 to 64 {
// GPU-LABEL: @own
// GPU: kernel.reduce custom init(%{{.*}}) i1 in 0 to 64 {

// -----

// Rows of eight are combined at last: the lanes of a row run around the rows.

kernel.func @short_rows(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 8 {
      %m = kernel.reduce max i2 in 0 to 8 {
        %n = kernel.reduce max i3 in 0 to 8 {
          %v = kernel.load %x[512*i0 + 64*i2 + 8*i1 + i3]
          kernel.yield %v
        }
        kernel.yield %n
      }
      kernel.store %m, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @short_rows
// CHECK:         kernel.reduce max i3 in 0 to 8 map vector tile 8 {
// CHECK-NEXT:      kernel.reduce max i2 in 0 to 8 {

// -----

// Lanes along planes would each have a page of their own: the short rows stay inside.

kernel.func @pages(%x: !kernel.buffer<f32, 262144>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 8 {
      kernel.for i2 in 0 to 8 {
        %s = kernel.reduce sum i3 in 0 to 8 {
          %r = kernel.reduce sum i4 in 0 to 8 {
            %v = kernel.load %x[4096*i0 + 512*i1 + 64*i3 + 8*i2 + i4]
            kernel.yield %v
          }
          kernel.yield %r
        }
        kernel.store %s, %y[64*i0 + 8*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @pages
// CHECK:         kernel.for i0 in 0 to 64 map parallel {
// CHECK-NEXT:      kernel.for i1 in 0 to 8 map parallel {
// CHECK-NEXT:        kernel.for i2 in 0 to 8 map parallel {
// CHECK-NEXT:          kernel.reduce sum i4 in 0 to 8 map vector tile 8 {

// -----

// Pixels of three bytes in the opposite order: neither side lies along lanes of pixels, so that pixels are copied whole.

kernel.func @mirrored_pixels(%x: !kernel.buffer<ui8, 10752>, %y: !kernel.buffer<ui8, 10752>) {
  kernel.for i0 in 0 to 16 {
    kernel.for i1 in 0 to 3 {
      kernel.for i2 in 0 to 224 {
        %v = kernel.load %x[672*i0 - 3*i2 + i1 + 669]
        kernel.store %v, %y[672*i0 + 3*i2 + i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @mirrored_pixels
// CHECK:         kernel.for i0 in 0 to 16 map parallel {
// CHECK-NEXT:      kernel.for i2 in 0 to 224 map parallel {
// CHECK-NEXT:        kernel.for i1 in 0 to 3 {
// CHECK-NEXT:          kernel.load

// -----

// Where something is computed, lanes run along the pixels.

kernel.func @scaled_pixels(%x: !kernel.buffer<f32, 10752>, %y: !kernel.buffer<f32, 10752>) {
  kernel.for i0 in 0 to 16 {
    kernel.for i1 in 0 to 3 {
      kernel.for i2 in 0 to 224 {
        %v = kernel.load %x[672*i0 - 3*i2 + i1 + 669]
        %e = math.exp %v : f32
        kernel.store %e, %y[672*i0 + 3*i2 + i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @scaled_pixels
// CHECK:           kernel.for i1 in 0 to 3 map parallel {
// CHECK-NEXT:        kernel.for i2 in 0 to 224 map vector tile 16 {

// -----

// The elements of a row are short sums themselves: lanes lie along the row, and each runs its own sum.

kernel.func @sums_of_parts(%x: !kernel.buffer<f32, 131072>, %y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 16 {
    %s = kernel.reduce sum i1 in 0 to 2048 {
      %p = kernel.reduce sum i2 in 0 to 4 {
        %v = kernel.load %x[32768*i2 + 2048*i0 + i1]
        kernel.yield %v
      }
      %q = arith.mulf %p, %p : f32
      kernel.yield %q
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// GPU-LABEL: kernel.func @sums_of_parts
// GPU:         kernel.reduce sum i1 in 0 to 2048 map vector {
// GPU-NEXT:      kernel.reduce sum i2 in 0 to 4 {

// A sum whose result is scattered stays a sum in lanes: along the result they would read the matrix a page apart.
kernel.func @scattered_sum(%x: !kernel.buffer<f32, 1024>, %w: !kernel.buffer<f32, 524288>, %p: !kernel.buffer<i64, 1>, %y: !kernel.buffer<f32, 131072>) {
  kernel.for i1 in 0 to 64 map parallel {
    kernel.for i0 in 0 to 8 {
      %0 = kernel.reduce sum i2 in 0 to 1024 {
        %1 = kernel.load %x[i2]
        %2 = kernel.load %w[65536*i0 + 1024*i1 + i2]
        %3 = arith.mulf %1, %2 : f32
        kernel.yield %3
      }
      %4 = kernel.load %p[0]
      kernel.store ordered %0, %y[16384*i0 + 64*d0 + i1] (d0 = %4)
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @scattered_sum
// CHECK-NOT: i1 in 0 to 64 map vector
// CHECK: kernel.reduce sum i2 in 0 to 1024 map vector
