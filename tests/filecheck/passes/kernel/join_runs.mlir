// RUN: inductile-opt %s --target cpp -p kernel-join-runs --verify-each | filecheck %s
// RUN: inductile-opt %s --target cpp -p kernel-join-runs,kernel-map,kernel-vectorize | filecheck %s --check-prefix=LANES
// RUN: inductile-opt %s --target cuda:90 -p kernel-join-runs | filecheck %s --check-prefix=GPU
// GPU-NOT: kernel.local

// Each group's means of 4 neighbours side by side: sums of all 32 elements of a position first, then of each group.
kernel.func @means(%x: !kernel.buffer<f32, 51200>, %m: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 51200>) {
  kernel.for i0 in 0 to 16 {
    kernel.for i1 in 0 to 8 {
      %s = kernel.reduce sum i2 in 0 to 100 {
        %p = kernel.reduce sum i3 in 0 to 4 {
          %v = kernel.load %x[3200*i0 + 4*i1 + 32*i2 + i3]
          kernel.yield %v
        }
        kernel.yield %p
      }
      %n = arith.constant 4.0e+02 : f32
      %q = arith.divf %s, %n : f32
      kernel.store %q, %m[8*i0 + i1]
      kernel.for i2 in 0 to 100 {
        kernel.for i3 in 0 to 4 {
          %v = kernel.load %x[3200*i0 + 4*i1 + 32*i2 + i3]
          %d = arith.subf %v, %q : f32
          kernel.store %d, %y[3200*i0 + 4*i1 + 32*i2 + i3]
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
// CHECK-LABEL: @means
// CHECK: kernel.for i0 in 0 to 16 {
// CHECK-NEXT: %[[A:.*]] = kernel.local : !kernel.buffer<f32, 32, local>
// CHECK-NEXT: kernel.for [[E:i[0-9]+]] in 0 to 32 {
// CHECK-NEXT: %[[S:.*]] = kernel.reduce sum i2 in 0 to 100 {
// CHECK-NEXT: kernel.load %x[3200*i0 + 32*i2 + [[E]]]
// CHECK: kernel.store %[[S]], %[[A]][[[E]]]
// CHECK: %[[B:.*]] = kernel.local : !kernel.buffer<f32, 32, local>
// CHECK-NEXT: kernel.for [[G:i[0-9]+]] in 0 to 8 {
// CHECK-NEXT: kernel.reduce sum i3 in 0 to 4 {
// CHECK-NEXT: kernel.load %[[A]][4*[[G]] + i3]
// CHECK: kernel.store %[[Q:.*]], %m[8*i0 + [[G]]]
// CHECK: kernel.store %[[Q]], %[[B]][4*[[G]] +
// CHECK: kernel.for i2 in 0 to 100 {
// CHECK-NEXT: kernel.for [[E]] in 0 to 32 {
// CHECK-NEXT: kernel.load %[[B]][[[E]]]
// CHECK: kernel.store %{{.*}}, %y[3200*i0 + 32*i2 + [[E]]]

// Lanes run along the elements of all runs.
// LANES-LABEL: @means
// LANES: kernel.for i0 in 0 to 16 map parallel {
// LANES: kernel.for i{{[0-9]+}} in 0 to 32 map vector tile 32 {
// LANES-NEXT: kernel.reduce sum i2 in 0 to 100 {

// One image has work for 16 cores only if few groups are joined, and there may be any number of runs.
kernel.func @parts(%x: !kernel.buffer<f32, 128*s0>, %y: !kernel.buffer<f32, 32>) symbols (s0) {
  kernel.for i1 in 0 to 32 {
    %s = kernel.reduce max i2 in 0 to s0 {
      %p = kernel.reduce max i3 in 0 to 4 {
        %v = kernel.load %x[4*i1 + 128*i2 + i3]
        kernel.yield %v
      }
      kernel.yield %p
    }
    kernel.store %s, %y[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @parts
// CHECK: kernel.for i1 in 0 to 8 {
// CHECK: kernel.for [[E:i[0-9]+]] in 0 to 16 {
// CHECK-NEXT: kernel.reduce max i2 in 0 to s0 {
// CHECK-NEXT: kernel.load %x[128*i2 + 16*i1 + [[E]]]
// CHECK: kernel.store %{{.*}}, %y[4*i1 + i{{[0-9]+}}]

// What is read by the place in a run alone has no place in all runs: nothing changes.
kernel.func @own(%x: !kernel.buffer<f32, 12800>, %w: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i1 in 0 to 32 {
    %s = kernel.reduce sum i2 in 0 to 100 {
      %p = kernel.reduce sum i3 in 0 to 4 {
        %v = kernel.load %x[4*i1 + 128*i2 + i3]
        %w0 = kernel.load %w[i3]
        %u = arith.mulf %v, %w0 : f32
        kernel.yield %u
      }
      kernel.yield %p
    }
    kernel.store %s, %y[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @own
// CHECK-NOT: kernel.local
