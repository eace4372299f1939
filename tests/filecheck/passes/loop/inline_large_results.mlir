// RUN: inductile-opt %s -p loop-inline | filecheck %s
// RUN: inductile-opt %s -p loop-inline --remarks=loop-inline -o %t 2>&1 | filecheck %s --check-prefix=REMARK

// The gradient of a large table from that of a few rows: inlined, both inputs would stay in memory beside the table.

func.func @table(%x0: !aten.tensor<64x768xf32>, %x1: !aten.tensor<64x768xf32>, %rows: !aten.tensor<64xi64>) -> (!aten.tensor<8192x768xf32>) {
  %g = loop.generate (i0 in 64, i1 in 768) {
    %l0 = loop.load %x0[i0, i1]
    %l1 = loop.load %x1[i0, i1]
    %s1 = arith.addf %l0, %l1 : f32
    %e = math.tanh %s1 : f32
    loop.yield %e
  } : !aten.tensor<64x768xf32>
  %zero = loop.generate (i0 in 8192, i1 in 768) {
    %z = arith.constant 0.0 : f32
    loop.yield %z
  } : !aten.tensor<8192x768xf32>
  %t = loop.scatter add (i0 in 64, i1 in 768) into %zero[d0, i1] {
    %v = loop.load %g[i0, i1]
    %r = loop.load %rows[i0]
    loop.yield %v, %r
  } : !aten.tensor<8192x768xf32>
  func.return %t : !aten.tensor<8192x768xf32>
}

// CHECK-LABEL: func.func @table
// CHECK:         %g = loop.generate
// CHECK:         loop.load %g

// REMARK: missed: loop.generate: 393216 bytes would stay beside 25165824 new ones, instead of 196608

// The one input is no larger than what is read in its place.

func.func @one_input(%x0: !aten.tensor<64x768xf32>, %rows: !aten.tensor<64xi64>) -> (!aten.tensor<8192x768xf32>) {
  %g = loop.generate (i0 in 64, i1 in 768) {
    %l0 = loop.load %x0[i0, i1]
    %e = math.tanh %l0 : f32
    loop.yield %e
  } : !aten.tensor<64x768xf32>
  %zero = loop.generate (i0 in 8192, i1 in 768) {
    %z = arith.constant 0.0 : f32
    loop.yield %z
  } : !aten.tensor<8192x768xf32>
  %t = loop.scatter add (i0 in 64, i1 in 768) into %zero[d0, i1] {
    %v = loop.load %g[i0, i1]
    %r = loop.load %rows[i0]
    loop.yield %v, %r
  } : !aten.tensor<8192x768xf32>
  func.return %t : !aten.tensor<8192x768xf32>
}

// CHECK-LABEL: func.func @one_input
// CHECK-NOT:     %g = loop.generate
// CHECK:         loop.scatter


// One of the inputs stays in memory anyway.

func.func @kept_input(%x0: !aten.tensor<64x768xf32>, %x1: !aten.tensor<64x768xf32>, %rows: !aten.tensor<64xi64>) -> (!aten.tensor<8192x768xf32>, !aten.tensor<64x768xf32>) {
  %g = loop.generate (i0 in 64, i1 in 768) {
    %l0 = loop.load %x0[i0, i1]
    %l1 = loop.load %x1[i0, i1]
    %s1 = arith.addf %l0, %l1 : f32
    %e = math.tanh %s1 : f32
    loop.yield %e
  } : !aten.tensor<64x768xf32>
  %zero = loop.generate (i0 in 8192, i1 in 768) {
    %z = arith.constant 0.0 : f32
    loop.yield %z
  } : !aten.tensor<8192x768xf32>
  %t = loop.scatter add (i0 in 64, i1 in 768) into %zero[d0, i1] {
    %v = loop.load %g[i0, i1]
    %r = loop.load %rows[i0]
    loop.yield %v, %r
  } : !aten.tensor<8192x768xf32>
  func.return %t, %x0 : !aten.tensor<8192x768xf32>, !aten.tensor<64x768xf32>
}

// CHECK-LABEL: func.func @kept_input
// CHECK-NOT:     %g = loop.generate
// CHECK:         loop.scatter


// Beside a small table, what is written once more would count.

func.func @small_table(%x0: !aten.tensor<64x768xf32>, %x1: !aten.tensor<64x768xf32>, %rows: !aten.tensor<64xi64>) -> (!aten.tensor<1024x768xf32>) {
  %g = loop.generate (i0 in 64, i1 in 768) {
    %l0 = loop.load %x0[i0, i1]
    %l1 = loop.load %x1[i0, i1]
    %s1 = arith.addf %l0, %l1 : f32
    %e = math.tanh %s1 : f32
    loop.yield %e
  } : !aten.tensor<64x768xf32>
  %zero = loop.generate (i0 in 1024, i1 in 768) {
    %z = arith.constant 0.0 : f32
    loop.yield %z
  } : !aten.tensor<1024x768xf32>
  %t = loop.scatter add (i0 in 64, i1 in 768) into %zero[d0, i1] {
    %v = loop.load %g[i0, i1]
    %r = loop.load %rows[i0]
    loop.yield %v, %r
  } : !aten.tensor<1024x768xf32>
  func.return %t : !aten.tensor<1024x768xf32>
}

// CHECK-LABEL: func.func @small_table
// CHECK-NOT:     %g = loop.generate
// CHECK:         loop.scatter
