// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p 'kernel-tile{target="cuda:90"}' | filecheck %s

// A rotation: a lane computes an element of each half, and reads both once.

kernel.func @rotate(%x: !kernel.buffer<f32, 8192>, %c: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 64
      %below = arith.cmpi slt, %i, %n : i64
      %above = arith.cmpi sge, %i, %n : i64
      %v = kernel.load %x[128*i0 + i1]
      %r = kernel.load %x[128*i0 + i1 + 64] if %below else %z
      %s = arith.negf %r : f32
      %l = kernel.load %x[128*i0 + i1 - 64] if %above else %z
      %m = arith.select %above, %l, %s : f32
      %k = kernel.load %c[i1]
      %w = arith.mulf %m, %k : f32
      %o = arith.addf %v, %w : f32
      kernel.store %o, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @rotate
// CHECK:         kernel.for i1 in 0 to 64 map grid
// CHECK-NOT:     if %
// CHECK-DAG:     %[[A:.*]] = kernel.load %x[128*i0 + i1]{{$}}
// CHECK-DAG:     %[[B:.*]] = kernel.load %x[128*i0 + i1 + 64]{{$}}
// CHECK-NOT:     kernel.load %x
// CHECK-DAG:     kernel.store %{{.*}}, %y[128*i0 + i1]{{$}}
// CHECK-DAG:     kernel.store %{{.*}}, %y[128*i0 + i1 + 64]{{$}}

// -----

// Halves that share nothing stay: half of the lanes would be as good.

kernel.func @join(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %c = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 64
      %below = arith.cmpi slt, %i, %n : i64
      %above = arith.cmpi sge, %i, %n : i64
      %a = kernel.load %x[64*i0 + i1] if %below else %c
      %b = kernel.load %y[64*i0 + i1 - 64] if %above else %c
      %v = arith.select %above, %b, %a : f32
      kernel.store %v, %z[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @join
// CHECK:         kernel.for i1 in 0 to 128 map grid

// -----

// Parts of different lengths, parts that are short, and what is written as well as read: as before.

kernel.func @uneven(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 48
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[128*i0 + i1 - 48] if %above else %z
      %v = kernel.load %x[128*i0 + i1]
      %o = arith.addf %v, %l : f32
      kernel.store %o, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @short(%x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 16 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 8
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[16*i0 + i1 - 8] if %above else %z
      %v = kernel.load %x[16*i0 + i1]
      %o = arith.addf %v, %l : f32
      kernel.store %o, %y[16*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @written(%x: !kernel.buffer<f32, 16384>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 64
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[128*i0 + i1 + 8128] if %above else %z
      %v = kernel.load %x[128*i0 + i1 + 8192]
      %o = arith.addf %v, %l : f32
      kernel.store %o, %x[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @uneven
// CHECK:         kernel.for i1 in 0 to 128 map grid
// CHECK-LABEL: kernel.func @short
// CHECK:         kernel.for i1 in 0 to 16 map grid
// CHECK-LABEL: kernel.func @written
// CHECK-NOT:     in 0 to 64 map grid tile 64
// CHECK:         if %above
