// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p 'kernel-tile{target="cuda:90"}' | filecheck %s

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
// CHECK-NEXT: %row = kernel.local : !kernel.buffer<f32, 128, local>
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
