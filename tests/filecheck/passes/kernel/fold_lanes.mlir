// RUN: inductile-opt %s --split-input-file --verify-each=numerics --target cuda:90 --pipeline schedule | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cuda:90 -p kernel-fold-lanes | filecheck %s --check-prefix=ALONE

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
host.func @run_rotate(%x: !aten.tensor<8192xf32, device = "cuda:0">, %c: !aten.tensor<128xf32, device = "cuda:0">, %y: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @rotate(%x, %c, %y)
  host.return %y
}

// ALONE-LABEL: kernel.func @rotate
// ALONE:         kernel.for i0 in 0 to 64 {
// ALONE-NEXT:      kernel.for i1 in 0 to 64 {
// ALONE-NOT:     if %
// ALONE:         kernel.store %{{.*}}, %y[128*i0 + i1 + 64]
// ALONE-LABEL: kernel.func @join
// ALONE:         kernel.for i1 in 0 to 128 {
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
host.func @run_join(%x: !aten.tensor<4096xf32, device = "cuda:0">, %y: !aten.tensor<4096xf32, device = "cuda:0">, %z: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @join(%x, %y, %z)
  host.return %z
}

// CHECK-LABEL: kernel.func @join
// CHECK:         kernel.for i1 in 0 to 128 map grid

// -----

// Parts of different lengths, parts that are short, what is written as well as read, and too many parts: as before.

kernel.func @uneven(%x: !kernel.buffer<f32, 8256>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 48
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[128*i0 + i1] if %above else %z
      %v = kernel.load %x[128*i0 + i1 + 64]
      %o = arith.addf %v, %l : f32
      kernel.store %o, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_uneven(%x: !aten.tensor<8256xf32, device = "cuda:0">, %y: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @uneven(%x, %y)
  host.return %y
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
host.func @run_short(%x: !aten.tensor<1024xf32, device = "cuda:0">, %y: !aten.tensor<1024xf32, device = "cuda:0">) -> (!aten.tensor<1024xf32, device = "cuda:0">) {
  host.launch @short(%x, %y)
  host.return %y
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
host.func @run_written(%x: !aten.tensor<16384xf32, device = "cuda:0">) -> (!aten.tensor<16384xf32, device = "cuda:0">) {
  host.launch @written(%x)
  host.return %x
}
kernel.func @many(%x: !kernel.buffer<f32, 288>, %y: !kernel.buffer<f32, 160>) {
  kernel.for i0 in 0 to 160 {
    %z = arith.constant 0.0 : f32
    %i = kernel.index i0
    %a = kernel.index 32
    %b = kernel.index 64
    %c = kernel.index 96
    %d = kernel.index 128
    %above = arith.cmpi sge, %i, %a : i64
    %higher = arith.cmpi sge, %i, %b : i64
    %below = arith.cmpi slt, %i, %c : i64
    %highest = arith.cmpi sge, %i, %d : i64
    %k = kernel.load %x[i0] if %above else %z
    %l = kernel.load %x[i0 + 32] if %higher else %z
    %m = kernel.load %x[i0 + 64] if %below else %z
    %n = kernel.load %x[i0 + 128] if %highest else %z
    %e = arith.addf %k, %l : f32
    %f = arith.addf %m, %n : f32
    %o = arith.addf %e, %f : f32
    kernel.store %o, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run_many(%x: !aten.tensor<288xf32, device = "cuda:0">, %y: !aten.tensor<160xf32, device = "cuda:0">) -> (!aten.tensor<160xf32, device = "cuda:0">) {
  host.launch @many(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @uneven
// CHECK:         kernel.for i1 in 0 to 128 map grid
// CHECK-LABEL: kernel.func @short
// CHECK:         kernel.for i1 in 0 to 16 map grid
// CHECK-LABEL: kernel.func @written
// CHECK-NOT:     in 0 to 64 map grid tile 64
// CHECK:         if %above
// CHECK-LABEL: kernel.func @many
// CHECK:         kernel.for i0 in 0 to 160 map grid

// -----

// A cut in the middle but for one element, which belongs to no part of equal length; an axis that does not run; and one
// that says how far another runs.

kernel.func @odd(%x: !kernel.buffer<f32, 4160>, %y: !kernel.buffer<f32, 4160>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 65 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 32
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[65*i0 + i1 - 32] if %above else %z
      %v = kernel.load %x[65*i0 + i1]
      %o = arith.addf %v, %l : f32
      kernel.store %o, %y[65*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_odd(%x: !aten.tensor<4160xf32, device = "cuda:0">, %y: !aten.tensor<4160xf32, device = "cuda:0">) -> (!aten.tensor<4160xf32, device = "cuda:0">) {
  host.launch @odd(%x, %y)
  host.return %y
}
kernel.func @none(%x: !kernel.buffer<f32, 0>, %y: !kernel.buffer<f32, 0>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 0 {
      %v = kernel.load %x[i1]
      kernel.store %v, %y[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_none(%x: !aten.tensor<0xf32, device = "cuda:0">, %y: !aten.tensor<0xf32, device = "cuda:0">) -> (!aten.tensor<0xf32, device = "cuda:0">) {
  host.launch @none(%x, %y)
  host.return %y
}
kernel.func @below_diagonal(%x: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 16384>) {
  kernel.for i0 in 0 to 128 {
    kernel.for i1 in 0 to i0 + 1 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i0
      %n = kernel.index 64
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[128*i0 + i1 - 8192] if %above else %z
      %v = kernel.load %x[128*i0 + i1]
      %o = arith.addf %v, %l : f32
      kernel.store %o, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_below_diagonal(%x: !aten.tensor<16384xf32, device = "cuda:0">, %y: !aten.tensor<16384xf32, device = "cuda:0">) -> (!aten.tensor<16384xf32, device = "cuda:0">) {
  host.launch @below_diagonal(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @odd
// CHECK:         kernel.for i2 in 0 to 4160 map grid
// CHECK-LABEL: kernel.func @none
// CHECK:         kernel.for i1 in 0 to 0 map grid
// CHECK-LABEL: kernel.func @below_diagonal
// CHECK:         kernel.for i0 in 0 to 128 map grid

// -----

// What is read is read only; beside it a place is written, and read again behind that.

kernel.func @update(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 8192>, %w: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %z = arith.constant 0.0 : f32
      %i = kernel.index i1
      %n = kernel.index 64
      %above = arith.cmpi sge, %i, %n : i64
      %l = kernel.load %x[128*i0 + i1 - 64] if %above else %z
      %v = kernel.load %x[128*i0 + i1]
      %t = arith.addf %v, %l : f32
      %o = kernel.load %y[128*i0 + i1]
      %u = arith.addf %t, %o : f32
      kernel.store %u, %y[128*i0 + i1]
      %a = kernel.load %y[128*i0 + i1]
      kernel.store %a, %w[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_update(%x: !aten.tensor<8192xf32, device = "cuda:0">, %y: !aten.tensor<8192xf32, device = "cuda:0">, %w: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">, !aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @update(%x, %y, %w)
  host.return %y, %w
}

// CHECK-LABEL: kernel.func @update
// CHECK:         kernel.for i1 in 0 to 64 map grid
// CHECK:         kernel.store %[[U:.*]], %y[128*i0 + i1]{{$}}
// CHECK:         kernel.store %[[U]], %w[128*i0 + i1]{{$}}
