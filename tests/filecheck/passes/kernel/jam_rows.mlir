// RUN: inductile-opt %s --target cpp -p 'kernel-jam-rows{loop-products=true rows=2}' --verify-each | filecheck %s
// RUN: inductile-opt %s --target cpp -p kernel-jam-rows | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-jam-rows{loop-products=true}' | filecheck %s --check-prefix=OFF
// OFF-NOT: [sum, sum]

// Two rows at once, which share what no row decides; a nest behind does the last row. Loops are still serial.
kernel.func @linear(%x: !kernel.buffer<f32, 6500>, %w: !kernel.buffer<f32, 4800>, %b: !kernel.buffer<f32, 48>, %y: !kernel.buffer<f32, 3120>) {
  kernel.for i0 in 0 to 65 {
    kernel.for i1 in 0 to 48 {
      %s = kernel.reduce sum i2 in 0 to 100 {
        %1 = kernel.load %x[100*i0 + i2]
        %2 = kernel.load %w[48*i2 + i1]
        %3 = arith.mulf %1, %2 : f32
        kernel.yield %3
      }
      %4 = kernel.load %b[i1]
      %5 = arith.addf %s, %4 : f32
      kernel.store %5, %y[48*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @linear
// CHECK: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: kernel.for i1 in 0 to 48 {
// CHECK-NEXT: %[[S:.*]], %[[T:.*]] = kernel.reduce [sum, sum] i2 in 0 to 100 block 512 {
// CHECK-NEXT: %[[A:.*]] = kernel.load %x[200*i0 + i2]
// CHECK-NEXT: %[[B:.*]] = kernel.load %w[48*i2 + i1]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[C:.*]] = kernel.load %x[200*i0 + i2 + 100]
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[C]], %[[B]] : f32
// CHECK-NEXT: kernel.yield %[[P]], %[[Q]]
// CHECK: kernel.store %{{.*}}, %y[96*i0 + i1]
// CHECK-NEXT: kernel.store %{{.*}}, %y[96*i0 + i1 + 48]
// CHECK: kernel.for i0 in 64 to 65 {
// CHECK: kernel.load %x[100*i0 + i2]

// A second factor that lies along the depth is read in lanes along the depth; any number of rows has a rest.
kernel.func @transposed(%x: !kernel.buffer<f32, 100*s0>, %w: !kernel.buffer<f32, 4800>, %y: !kernel.buffer<f32, 48*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    kernel.for i1 in 0 to 48 {
      %s = kernel.reduce sum i2 in 0 to 100 {
        %1 = kernel.load %x[100*i0 + i2]
        %2 = kernel.load %w[100*i1 + i2]
        %3 = arith.mulf %1, %2 : f32
        kernel.yield %3
      }
      kernel.store %s, %y[48*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @transposed
// CHECK: kernel.for i0 in 0 to s0 floordiv 2 map parallel {
// CHECK-NEXT: kernel.for i1 in 0 to 48 map parallel {
// CHECK-NEXT: kernel.reduce [sum, sum] i2 in 0 to 100 map vector tile 16 block 512 {
// CHECK: kernel.for i0 in 2*(s0 floordiv 2) to s0 {
