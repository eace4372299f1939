// RUN: inductile-opt %s --split-input-file --verify-each=numerics --target cuda:90 --pipeline schedule | filecheck %s

// Rows of several heads, written in place, behind checks that are made once for all heads: each head has a part of the
// buffer for itself, which fits into registers. As a whole it would go through memory, for what it holds is overwritten.

kernel.func @heads(%i: !kernel.buffer<i64, 64>, %x: !kernel.buffer<f32, 65536>) errors ["IndexError: out of range"] {
  kernel.for i0 in 0 to 64 {
    %row = kernel.local : !kernel.buffer<f32, 1024, local>
    kernel.for i5 in 0 to 2048 {
      %k = kernel.load %i[i0]
      %most = arith.constant 128 : i64
      %fine = arith.cmpi slt, %k, %most : i64
      kernel.for i3 in 0 to 8 {
        kernel.assert %fine, 1
        kernel.yield
      }
      kernel.yield
    }
    kernel.for i1 in 0 to 8 {
      %s = kernel.reduce sum i2 in 0 to 128 {
        %v = kernel.load %x[8192*i1 + 128*i0 + i2]
        %e = math.exp %v : f32
        kernel.store %e, %row[128*i1 + i2]
        kernel.yield %e
      }
      kernel.for i4 in 0 to 128 {
        %e = kernel.load %row[128*i1 + i4]
        %q = arith.divf %e, %s : f32
        kernel.store %q, %x[8192*i1 + 128*i0 + i4]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_heads(%i: !aten.tensor<64xi64, device = "cuda:0">, %x: !aten.tensor<65536xf32, device = "cuda:0">) -> (!aten.tensor<65536xf32, device = "cuda:0">) {
  host.launch @heads(%i, %x)
  host.return %x
}

// CHECK-LABEL: @heads(%i: !kernel.buffer<i64, 64>, %x: !kernel.buffer<f32, 65536>) errors
// CHECK: kernel.for i1 in 0 to 8 {
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: %row = kernel.local tile : !kernel.buffer<f32, 128, local>
// CHECK-NEXT: kernel.reduce sum i2 in 0 to 128 map vector tile 128
// CHECK: kernel.store %{{.*}}, %row[i2]
// CHECK: kernel.load %row[i4]

// -----

// The parts lie in between each other: the buffer goes through memory.

kernel.func @between(%i: !kernel.buffer<i64, 64>, %x: !kernel.buffer<f32, 65536>) errors ["IndexError: out of range"] {
  kernel.for i0 in 0 to 64 {
    %row = kernel.local : !kernel.buffer<f32, 1024, local>
    kernel.for i5 in 0 to 2048 {
      %k = kernel.load %i[i0]
      %most = arith.constant 128 : i64
      %fine = arith.cmpi slt, %k, %most : i64
      kernel.for i3 in 0 to 8 {
        kernel.assert %fine, 1
        kernel.yield
      }
      kernel.yield
    }
    kernel.for i1 in 0 to 8 {
      %s = kernel.reduce sum i2 in 0 to 128 {
        %v = kernel.load %x[8192*i1 + 128*i0 + i2]
        %e = math.exp %v : f32
        kernel.store %e, %row[i1 + 8*i2]
        kernel.yield %e
      }
      kernel.for i4 in 0 to 128 {
        %e = kernel.load %row[i1 + 8*i4]
        %q = arith.divf %e, %s : f32
        kernel.store %q, %x[8192*i1 + 128*i0 + i4]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_between(%i: !aten.tensor<64xi64, device = "cuda:0">, %x: !aten.tensor<65536xf32, device = "cuda:0">) -> (!aten.tensor<65536xf32, device = "cuda:0">) {
  host.launch @between(%i, %x)
  host.return %x
}

// CHECK-LABEL: @between(%i: !kernel.buffer<i64, 64>, %x: !kernel.buffer<f32, 65536>, %row: !kernel.buffer<f32, 65536>)
// CHECK-NOT: kernel.local

// -----

// Lanes lie along the row, the two places of each element are written out; what a masked load reads from the row is
// computed again, and the mask still chooses.

kernel.func @interleaved(%x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 32 {
    %s = kernel.reduce sum i1 in 0 to 32 {
      %v = kernel.load %x[32*i0 + i1]
      kernel.yield %v
    }
    %row = kernel.local : !kernel.buffer<f32, 32, local>
    kernel.for i2 in 0 to 32 {
      %v = kernel.load %x[32*i0 + i2]
      %d = arith.subf %v, %s : f32
      kernel.store %d, %row[i2]
      kernel.for i3 in 0 to 2 {
        %k = kernel.index i3
        %zero = arith.constant 0 : i64
        %first = arith.cmpi eq, %k, %zero : i64
        %none = arith.constant 0.0 : f32
        %w = kernel.load %row[i2] if %first else %none
        kernel.store %w, %y[64*i0 + 2*i2 + i3]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_interleaved(%x: !aten.tensor<1024xf32, device = "cuda:0">, %y: !aten.tensor<2048xf32, device = "cuda:0">) -> (!aten.tensor<2048xf32, device = "cuda:0">) {
  host.launch @interleaved(%x, %y)
  host.return %y
}

// CHECK-LABEL: @interleaved(
// CHECK-NOT: kernel.local
// CHECK: kernel.for i2 in 0 to 32 map vector tile 32
// CHECK: %[[D:.*]] = arith.subf
// CHECK: kernel.for i3 in 0 to 2 map unroll
// CHECK: arith.select %{{.*}}, %[[D]], %{{.*}} : f32

// -----

// Where the mask is false nothing was stored: the row goes through memory, and the mask stays.

kernel.func @shifted(%x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 32 {
    %s = kernel.reduce sum i1 in 0 to 32 {
      %v = kernel.load %x[32*i0 + i1]
      kernel.yield %v
    }
    %row = kernel.local : !kernel.buffer<f32, 32, local>
    kernel.for i2 in 0 to 32 {
      %v = kernel.load %x[32*i0 + i2]
      %d = arith.subf %v, %s : f32
      kernel.store %d, %row[i2]
      kernel.yield
    }
    kernel.for i3 in 0 to 64 {
      %k = kernel.index i3
      %most = arith.constant 32 : i64
      %there = arith.cmpi slt, %k, %most : i64
      %none = arith.constant 0.0 : f32
      %w = kernel.load %row[i3] if %there else %none
      kernel.store %w, %y[64*i0 + i3]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_shifted(%x: !aten.tensor<1024xf32, device = "cuda:0">, %y: !aten.tensor<2048xf32, device = "cuda:0">) -> (!aten.tensor<2048xf32, device = "cuda:0">) {
  host.launch @shifted(%x, %y)
  host.return %y
}

// CHECK-LABEL: @shifted(
// CHECK: kernel.load %row[{{.*}}] if
