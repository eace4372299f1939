// RUN: inductile-opt %s --split-input-file --verify-each --pipeline schedule | filecheck %s

// One long axis: blocks for threads, lanes inside.

kernel.func @add1d(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) {
  kernel.for i0 in 0 to 1048576 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @add1d(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) target "cpp" {
// CHECK-NEXT: kernel.for i1 in 0 to 64 map parallel tile 4 {
// CHECK-NEXT: kernel.for i0 in 16384*i1 to 16384*i1 + 16384 map vector tile 16 {

// -----

// Too little work for threads.

kernel.func @small(%x: !kernel.buffer<f32, 1000>, %y: !kernel.buffer<f32, 1000>) {
  kernel.for i0 in 0 to 1000 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @small(%x: !kernel.buffer<f32, 1000>, %y: !kernel.buffer<f32, 1000>) target "cpp" {
// CHECK-NEXT: kernel.for i0 in 0 to 1000 map vector tile 16 {

// -----

// Unknown sizes: threads only above a grain, which is decided when the program runs.

kernel.func @dyn(%x: !kernel.buffer<f32, s0*s1>, %y: !kernel.buffer<f32, s0*s1>, %b: !kernel.buffer<f32, s1>) symbols (s0, s1) {
  kernel.for i0 in 0 to s0 {
  kernel.for i1 in 0 to s1 {
    %v = kernel.load %x[s1*i0 + i1]
    %c = kernel.load %b[i1]
    %d = arith.addf %v, %c : f32
    kernel.store %d, %y[s1*i0 + i1]
    kernel.yield
  }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @dyn(%x: !kernel.buffer<f32, s0*s1>, %y: !kernel.buffer<f32, s0*s1>, %b: !kernel.buffer<f32, s1>) symbols (s0, s1) target "cpp" {
// CHECK-NEXT: kernel.for i0 in 0 to s0 map parallel tile 157 {
// CHECK-NEXT: kernel.for i1 in 0 to s1 map vector tile 16 {

// -----

// A sum over rows: neighbours are columns, so columns run in lanes and the sum stays serial inside.

kernel.func @colsum(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 1024 {
    %s = kernel.reduce sum i1 in 0 to 1024 {
      %v = kernel.load %x[1024*i1 + i0]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @colsum(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1024>) target "cpp" {
// CHECK-NEXT: kernel.for i2 in 0 to 16 map parallel {
// CHECK-NEXT: kernel.for i0 in 64*i2 to 64*i2 + 64 map vector tile 64 {
// CHECK-NEXT: %s = kernel.reduce sum i1 in 0 to 1024 block 32 {

// -----

// Neighbours along different axes: square blocks.

kernel.func @transpose(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) {
  kernel.for i0 in 0 to 1024 {
   kernel.for i1 in 0 to 1024 {
    %v = kernel.load %x[1024*i1 + i0]
    %w = kernel.load %x[1024*i0 + i1]
    %a = arith.addf %v, %w : f32
    kernel.store %a, %y[1024*i0+i1]
    kernel.yield
   }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @transpose(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) target "cpp" {
// CHECK-NEXT: kernel.for i4 in 0 to 256 map parallel tile 9 {
// CHECK-NEXT: %block = kernel.local : !kernel.buffer<f32, 4096, local>
// CHECK-NEXT: kernel.for i2 in 64*(i4 mod 16) to 64*(i4 mod 16) + 64 intrinsic transpose {
// CHECK-NEXT: kernel.for i3 in 64*(i4 floordiv 16) to 64*(i4 floordiv 16) + 64 map vector tile 16 {
// CHECK-NEXT: %0 = kernel.load %x[1024*i2 + i3]
// CHECK-NEXT: kernel.store %0, %block[-4096*(i4 floordiv 16) + 64*i3 - 64*(i4 mod 16) + i2]
// CHECK: kernel.for i0 in 64*(i4 floordiv 16) to 64*(i4 floordiv 16) + 64 {
// CHECK-NEXT: kernel.for i1 in 64*(i4 mod 16) to 64*(i4 mod 16) + 64 map vector tile 16 {
// CHECK-NEXT: %v = kernel.load %block[-4096*(i4 floordiv 16) + 64*i0 - 64*(i4 mod 16) + i1]

// -----

// A sum over everything.

kernel.func @total(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce sum i0 in 0 to 1024 {
   %t = kernel.reduce sum i1 in 0 to 1024 {
    %v = kernel.load %x[1024*i0 + i1]
    kernel.yield %v
   }
    kernel.yield %t
  }
  kernel.store %s, %y[0]
  kernel.yield
}

// CHECK-LABEL: kernel.func @total(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1>) target "cpp" {
// CHECK-NEXT: %s = kernel.reduce sum i0 in 0 to 1024 block 32 {
// CHECK-NEXT: %t = kernel.reduce sum i1 in 0 to 1024 map vector tile 64 {

// -----

// Rows shorter than the lanes: the rows themselves run in lanes.

kernel.func @three(%x: !kernel.buffer<f32, 3000000>, %y: !kernel.buffer<f32, 1000000>) {
  kernel.for i0 in 0 to 1000000 {
   %t = kernel.reduce sum i1 in 0 to 3 {
    %v = kernel.load %x[3*i0 + i1]
    kernel.yield %v
   }
   kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @three(%x: !kernel.buffer<f32, 3000000>, %y: !kernel.buffer<f32, 1000000>) target "cpp" {
// CHECK-NEXT: kernel.for i2 in 0 to 123 map parallel tile 4 {
// CHECK-NEXT: kernel.for i0 in 8192*i2 to min(8192*i2 + 8192, 1000000) map vector tile 64 {

// -----

// A scan along rows: its elements wait for each other, columns do not.

kernel.func @cumsum0(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) {
  kernel.for i0 in 0 to 1024 {
    kernel.scan sum i1 in 0 to 1024 {
      %v = kernel.load %x[1024*i1 + i0]
      kernel.yield %v
    } then {
    ^bb0(%c: f32):
      kernel.store %c, %y[1024*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @cumsum0(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) target "cpp" {
// CHECK-NEXT: kernel.for i2 in 0 to 16 map parallel {
// CHECK-NEXT: kernel.for i0 in 64*i2 to 64*i2 + 64 map vector tile 64 {

// -----

// Elements that may meet run one after the other and need not be atomic.

kernel.func @scatter(%x: !kernel.buffer<f32, 1000>, %i: !kernel.buffer<i64, 1000>, %y: !kernel.buffer<f32, 10>) {
  kernel.for i0 in 0 to 1000 {
      %j = kernel.load %i[i0]
      %v = kernel.load %x[i0]
      kernel.store add atomic %v, %y[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @scatter(%x: !kernel.buffer<f32, 1000>, %i: !kernel.buffer<i64, 1000>, %y: !kernel.buffer<f32, 10>) target "cpp" {
// CHECK: kernel.store add %v, %y[d0] (d0 = %j)

// -----

// Rows that may meet, columns that do not: columns run in lanes and threads, and their rows one after the other.

kernel.func @index_add(%x: !kernel.buffer<f32, 1024*s0>, %i: !kernel.buffer<i64, s0>, %y: !kernel.buffer<f32, 10240>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    kernel.for i1 in 0 to 1024 {
      %j = kernel.load %i[i0]
      %v = kernel.load %x[1024*i0 + i1]
      kernel.store add atomic %v, %y[1024*d0 + i1] (d0 = %j)
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @index_add(%x: !kernel.buffer<f32, 1024*s0>, %i: !kernel.buffer<i64, s0>, %y: !kernel.buffer<f32, 10240>) symbols (s0) target "cpp" {
// CHECK-NEXT: kernel.for i2 in 0 to 2 map parallel {
// CHECK-NEXT: kernel.for i0 in 0 to s0 {
// CHECK-NEXT: %j = kernel.load %i[i0]
// CHECK-NEXT: kernel.for i1 in 512*i2 to 512*i2 + 512 map vector tile 16 {
// CHECK: kernel.store add %v, %y[1024*d0 + i1] (d0 = %j)

// -----

// All elements of the domain go to places of their own but along the first axis, which has the last word.

kernel.func @index_put(%x: !kernel.buffer<f32, 80*s0>, %i: !kernel.buffer<i64, s0>, %y: !kernel.buffer<f32, 100*s1>) symbols (s0, s1) {
  kernel.for i0 in 0 to s0 {
    kernel.for i1 in 0 to s1 {
      %j = kernel.load %i[i0]
      %v = kernel.load %x[s1*i0 + i1]
      kernel.store ordered %v, %y[s1*d0 + i1] (d0 = %j)
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @index_put(%x: !kernel.buffer<f32, 80*s0>, %i: !kernel.buffer<i64, s0>, %y: !kernel.buffer<f32, 100*s1>) symbols (s0, s1) target "cpp" {
// CHECK-NEXT: kernel.for i2 in 0 to (s1 + 511) floordiv 512 map parallel {
// CHECK: kernel.for i1 in 512*i2 to min(512*i2 + 512, s1) map vector tile 16 {

// -----

// A row that goes to memory as well is read back from there. One that is read at another place than it was stored stays.

kernel.func @read_back(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>, %z: !kernel.buffer<f32, 4096*s0>, %w: !kernel.buffer<f32, 4096*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %a = kernel.local : !kernel.buffer<f32, 4096, local>
    %b = kernel.local : !kernel.buffer<f32, 4096, local>
    %s = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %y[4096*i0 + i1]
      kernel.store %e, %a[i1]
      %f = math.tanh %v : f32
      kernel.store %f, %w[4096*i0 + i1]
      kernel.store %f, %b[i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 4096 {
      %v = kernel.load %a[i1]
      %u = kernel.load %b[-i1 + 4095]
      %q = arith.divf %v, %s : f32
      %r = arith.addf %q, %u : f32
      kernel.store %r, %z[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @read_back(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>, %z: !kernel.buffer<f32, 4096*s0>, %w: !kernel.buffer<f32, 4096*s0>) symbols (s0) target "cpp" {
// CHECK-NEXT: kernel.for i0 in 0 to s0 map parallel {
// CHECK: %s = kernel.reduce sum i1 in 0 to 4096 map vector tile 64 {
// CHECK-NEXT: %v = kernel.load %x[4096*i0 + i1]
// CHECK: kernel.store %e, %y[4096*i0 + i1]
// CHECK-NEXT: %f = math.tanh %v : f32
// CHECK: kernel.for i1 in 0 to 4096 map vector tile 16 {
// CHECK-NEXT: %v_1 = kernel.load %y[4096*i0 + i1]

// -----

// Three rows are short, but as lanes run along them, each access would touch a line of its own: blocks, of whole rows.

kernel.func @short_transpose(%x: !kernel.buffer<f32, 12288>, %y: !kernel.buffer<f32, 12288>) {
  kernel.for i0 in 0 to 4096 {
    kernel.for i1 in 0 to 3 {
      %v = kernel.load %x[4096*i1 + i0]
      kernel.store %v, %y[3*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @short_transpose
// CHECK:         kernel.for i2 in 0 to 64
// CHECK-NEXT:      kernel.for i1 in 0 to 3 intrinsic transpose {
// CHECK-NEXT:        kernel.for i0 in 64*i2 to 64*i2 + 64 map vector tile 16 {

// -----

// The outer axis says how far the inner one runs: it stays outside.

kernel.func @one_by_one(%x: !kernel.buffer<f32, 33554432>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 256 {
    kernel.for i1 in 32*i0 to 32*i0 + 32 {
      %s = kernel.reduce sum r0 in 0 to 4096 {
        %v = kernel.load %x[4096*i1 + r0]
        kernel.yield %v
      }
      kernel.store %s, %y[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @one_by_one
// CHECK: kernel.for i0 in 0 to 256 map parallel
// CHECK: kernel.for i1 in 32*i0 to 32*i0 + 32
// CHECK: kernel.reduce sum r0 in 0 to 4096 map vector tile 64
