// RUN: inductile-opt %s --target cuda:90 --pipeline schedule -t triton | filecheck %s

// A loop over rows carries the largest of columns: a local buffer that is filled in front of the loop, and loaded and stored
// in each iteration, is a variable. What was loaded keeps a name of its own, which the next store does not touch.
kernel.func @rows(%x: !kernel.buffer<f32, 105000>, %y: !kernel.buffer<f32, 1050>, %p: !kernel.buffer<f32, 6600>) {
  kernel.for i0 in 0 to 66 {
    %total = kernel.local : !kernel.buffer<f32, 100, local>
    kernel.for i1 in 0 to 100 {
      %zero = arith.constant 0.0 : f32
      kernel.store %zero, %total[i1]
      kernel.yield
    }
    kernel.for i2 in 16*i0 to min(16*i0 + 16, 1050) {
      %m = kernel.reduce max i3 in 0 to 100 {
        %v = kernel.load %x[100*i2 + i3]
        kernel.yield %v
      }
      kernel.store %m, %y[i2]
      kernel.for i3 in 0 to 100 {
        %v = kernel.load %x[100*i2 + i3]
        %old = kernel.load %total[i3]
        %new = arith.maximumf %old, %v : f32
        kernel.store %new, %total[i3]
        kernel.yield
      }
      kernel.yield
    }
    kernel.for i1 in 0 to 100 {
      %t = kernel.load %total[i1]
      kernel.store %t, %p[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: def rows(
// CHECK:      i0 = tl.program_id(0)
// CHECK-NEXT: i1 = tl.arange(0, BLOCK_I1)
// CHECK:      total = tl.full([BLOCK_I1], 0.0, tl.float32)
// CHECK-NEXT: for i2 in range(16 * i0, tl.minimum({{.*}})):
// CHECK:        [[M:m[_0-9]*]] = tl.reduce({{.*}}, 0, prelude.maximum)
// CHECK:        [[OLD:old[_0-9]*]] = total
// CHECK-NEXT:   [[NEW:new[_0-9]*]] = prelude.maximum([[OLD]], {{v[_0-9]*}})
// CHECK-NEXT:   total = [[NEW]]
// CHECK:      [[T:t[_0-9]*]] = total
// CHECK-NEXT: tl.store(p + (100 * i0 + i1), [[T]], mask=i1_mask)

// Sums are added to by several rows at once: lanes along the rows are combined first.
kernel.func @sums(%x: !kernel.buffer<f32, 105000>, %y: !kernel.buffer<f32, 1050>, %p: !kernel.buffer<f32, 6600>) {
  kernel.for i0 in 0 to 66 {
    %total = kernel.local : !kernel.buffer<f32, 100, local>
    kernel.for i1 in 0 to 100 {
      %none = arith.constant 0.0 : f32
      kernel.store %none, %total[i1]
      kernel.yield
    }
    kernel.for i2 in 16*i0 to min(16*i0 + 16, 1050) {
      %m = kernel.reduce max i3 in 0 to 100 {
        %v = kernel.load %x[100*i2 + i3]
        kernel.yield %v
      }
      kernel.store %m, %y[i2]
      kernel.for i3 in 0 to 100 {
        %v = kernel.load %x[100*i2 + i3]
        %old = kernel.load %total[i3]
        %new = arith.addf %old, %v : f32
        kernel.store %new, %total[i3]
        kernel.yield
      }
      kernel.yield
    }
    kernel.for i1 in 0 to 100 {
      %t = kernel.load %total[i1]
      kernel.store %t, %p[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: def sums(
// CHECK:      i1 = tl.arange(0, BLOCK_I1)[None, :]
// CHECK:      total = tl.full([1, BLOCK_I1], 0.0, tl.float32)
// CHECK:        i2 = {{.*}} + tl.arange(0, BLOCK_I2)[:, None]
// CHECK:        part = tl.where(mask, v, 0.0)
// CHECK-NEXT:   combined = tl.sum(part, 0, keep_dims=True)
// CHECK-NEXT:   total = total + combined
// CHECK:      tl.store(p + (100 * i0 + i1), t, mask=i1_mask)
