// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-join-columns | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cpp -p kernel-join-columns | filecheck %s --check-prefix=CPU

// CPU-NOT: _and_columns

// The columns come first, are summed in parts whose last one is not full, and the total of the parts stands between.
kernel.func @columns(%x: !kernel.buffer<f32, 67200>, %p: !kernel.buffer<f32, 4224>) {
  kernel.for i0 in 0 to 66 {
    kernel.for i1 in 0 to 64 {
      %zero = arith.constant 0.0 : f32
      %s = kernel.reduce sum i2 in 0 to 16 {
        %v = kernel.load %x[64*min(16*i0 + i2, 1049) + i1]
        %w = arith.mulf %v, %v : f32
        %row = kernel.index 16*i0 + i2
        %end = kernel.index 1050
        %inside = arith.cmpi slt, %row, %end : i64
        %term = arith.select %inside, %w, %zero : f32
        kernel.yield %term
      }
      kernel.store %s, %p[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @total(%p: !kernel.buffer<f32, 4224>, %t: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %s = kernel.reduce sum i1 in 0 to 66 {
      %v = kernel.load %p[64*i1 + i0]
      kernel.yield %v
    }
    kernel.store %s, %t[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @rows(%x: !kernel.buffer<f32, 67200>, %y: !kernel.buffer<f32, 67200>) {
  kernel.for i0 in 0 to 1050 {
    %m = kernel.reduce max i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      %d = arith.subf %v, %m : f32
      kernel.store %d, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @inputs(%x: !aten.tensor<1050x64xf32, device = "cuda:0">) -> (!aten.tensor<1050x64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %p = host.empty : !aten.tensor<66x64xf32, device = "cuda:0">
  host.launch @columns(%x, %p)
  %t = host.empty : !aten.tensor<64xf32, device = "cuda:0">
  host.launch @total(%p, %t)
  %y = host.empty : !aten.tensor<1050x64xf32, device = "cuda:0">
  host.launch @rows(%x, %y)
  host.return %y, %t
}
// CHECK-LABEL: kernel.func @rows_and_columns(%x: !kernel.buffer<f32, 67200>, %y: !kernel.buffer<f32, 67200>, %p: !kernel.buffer<f32, 4224>) {
// CHECK-NEXT:    kernel.for [[P:i[0-9]+]] in 0 to 66 {
// CHECK-NEXT:      %s = kernel.local : !kernel.buffer<f32, 64, local>
// CHECK-NEXT:      kernel.for [[C:i[0-9]+]] in 0 to 64 {
// CHECK-NEXT:        %[[Z:[0-9a-z_]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:        kernel.store %[[Z]], %s{{\[}}[[C]]]
// CHECK:           kernel.for [[R:i[0-9]+]] in 16*[[P]] to min(16*[[P]] + 16, 1050) {
// CHECK-NEXT:        %m = kernel.reduce max [[I:i[0-9]+]] in 0 to 64 {
// CHECK-NEXT:          %v = kernel.load %x[64*[[R]] + [[I]]]
// CHECK:             kernel.for [[I]] in 0 to 64 {
// CHECK-NEXT:          %[[V:[0-9a-z_]+]] = kernel.load %x[64*[[R]] + [[I]]]
// CHECK:               kernel.store %{{.*}}, %y[64*[[R]] + [[I]]]
// CHECK-NEXT:          %[[W:[0-9a-z_]+]] = arith.mulf %[[V]], %[[V]] : f32
// CHECK-NOT:           arith.select
// CHECK:               %[[OLD:[0-9a-z_]+]] = kernel.load %s{{\[}}[[I]]]
// CHECK-NEXT:          %[[NEW:[0-9a-z_]+]] = arith.addf %[[OLD]], %[[W]] : f32
// CHECK-NEXT:          kernel.store %[[NEW]], %s{{\[}}[[I]]]
// CHECK:           kernel.for [[C]] in 0 to 64 {
// CHECK-NEXT:        %[[T:[0-9a-z_]+]] = kernel.load %s{{\[}}[[C]]]
// CHECK-NEXT:        kernel.store %[[T]], %p[64*[[P]] + [[C]]]
// CHECK-LABEL: host.func @inputs
// CHECK-NEXT:    %p = host.empty
// CHECK-NEXT:    %y = host.empty
// CHECK-NEXT:    host.launch @rows_and_columns(%x, %y, %p)
// CHECK-NEXT:    %t = host.empty
// CHECK-NEXT:    host.launch @total(%p, %t)
// CHECK-NEXT:    host.return

// -----

// Columns of what the rows write, in a dynamic number of rows: the value is at hand, rather than read again.
kernel.func @rows(%x: !kernel.buffer<f32, 64*s0>, %y: !kernel.buffer<f32, 64*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %m = kernel.reduce max i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      %d = arith.subf %v, %m : f32
      kernel.store %d, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @columns(%y: !kernel.buffer<f32, 64*s0>, %p: !kernel.buffer<f32, 16384>) symbols (s0) {
  kernel.for i0 in 0 to 256 {
    kernel.for i1 in 0 to 64 {
      %zero = arith.constant 0.0 : f32
      %s = kernel.reduce sum i2 in 0 to (s0 + 255) floordiv 256 {
        %v = kernel.load %y[64*min(s0 - 1, i0*((s0 + 255) floordiv 256) + i2) + i1]
        %row = kernel.index i0*((s0 + 255) floordiv 256) + i2
        %end = kernel.index s0
        %inside = arith.cmpi slt, %row, %end : i64
        %term = arith.select %inside, %v, %zero : f32
        kernel.yield %term
      }
      kernel.store %s, %p[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @results(%x: !aten.tensor<(s0)x64xf32, device = "cuda:0">) -> (!aten.tensor<(s0)x64xf32, device = "cuda:0">, !aten.tensor<256x64xf32, device = "cuda:0">) symbols [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 1000>] {
  %y = host.empty : !aten.tensor<(s0)x64xf32, device = "cuda:0">
  host.launch @rows(%x, %y) [s0]
  %p = host.empty : !aten.tensor<256x64xf32, device = "cuda:0">
  host.launch @columns(%y, %p) [s0]
  host.return %y, %p
}
// CHECK-LABEL: kernel.func @rows_and_columns(
// CHECK-SAME:    symbols (s0)
// CHECK:       kernel.for [[R:i[0-9]+]] in [[P:i[0-9]+]]*((s0 + 255) floordiv 256) to min(s0, [[P]]*((s0 + 255) floordiv 256) + (s0 + 255) floordiv 256) {
// CHECK:         kernel.store %[[D:[0-9a-z_]+]], %y[64*[[R]] + [[I:i[0-9]+]]]
// CHECK-NEXT:    %[[OLD:[0-9a-z_]+]] = kernel.load %s{{\[}}[[I]]]
// CHECK-NEXT:    arith.addf %[[OLD]], %[[D]]
// CHECK-LABEL: host.func @results
// CHECK:         host.launch @rows_and_columns(%x, %y, %p) [s0]
// CHECK-NEXT:    host.return

// -----

// What must not be joined: columns that are summed before the rows write over what they read, and rows of another
// number than the parts hold.
kernel.func @columns(%x: !kernel.buffer<f32, 67584>, %p: !kernel.buffer<f32, 4224>) {
  kernel.for i0 in 0 to 66 {
    kernel.for i1 in 0 to 64 {
      %s = kernel.reduce sum i2 in 0 to 16 {
        %v = kernel.load %x[1024*i0 + 64*i2 + i1]
        kernel.yield %v
      }
      kernel.store %s, %p[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @in_place(%x: !kernel.buffer<f32, 67584>) {
  kernel.for i0 in 0 to 1056 {
    %m = kernel.reduce max i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      %d = arith.subf %v, %m : f32
      kernel.store %d, %x[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @some_rows(%x: !kernel.buffer<f32, 67584>, %m: !kernel.buffer<f32, 1000>) {
  kernel.for i0 in 0 to 1000 {
    %r = kernel.reduce max i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    }
    kernel.store %r, %m[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @neither(%x: !aten.tensor<1056x64xf32, device = "cuda:0">) -> (!aten.tensor<66x64xf32, device = "cuda:0">, !aten.tensor<1000xf32, device = "cuda:0">) {
  %p = host.empty : !aten.tensor<66x64xf32, device = "cuda:0">
  host.launch @columns(%x, %p)
  %m = host.empty : !aten.tensor<1000xf32, device = "cuda:0">
  host.launch @some_rows(%x, %m)
  host.launch @in_place(%x)
  host.return %p, %m
}
// CHECK-LABEL: host.func @neither
// CHECK:         host.launch @columns(%x, %p)
// CHECK:         host.launch @some_rows(%x, %m)
// CHECK-NEXT:    host.launch @in_place(%x)
