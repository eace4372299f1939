// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-block-rows,kernel-assign-registers | filecheck %s

// Rows whose columns a program sums: eight at once. The lanes of a column add to its sum, which is set and read in a
// dimension of one element beside the columns.

kernel.func @columns(%x: !kernel.buffer<f32, 131072>, %y: !kernel.buffer<f32, 131072>, %p: !kernel.buffer<f32, 8192>)
    target "cuda:90" per_thread 16 {
  kernel.for i2 in 0 to 8 map grid {
    %total = kernel.local : !kernel.buffer<f32, 1024, local>
    kernel.for i1 in 0 to 1024 map vector tile 1024 {
      %0 = arith.constant 0.0 : f32
      kernel.store %0, %total[i1]
      kernel.yield
    }
    kernel.for i0 in 0 to 16 {
      %s = kernel.reduce sum i1 in 0 to 1024 map vector tile 1024 {
        %1 = kernel.load %x[16384*i2 + 1024*i0 + i1]
        kernel.yield %1
      }
      kernel.for i1 in 0 to 1024 map vector tile 1024 {
        %2 = kernel.load %x[16384*i2 + 1024*i0 + i1]
        %3 = arith.subf %2, %s : f32
        kernel.store %3, %y[16384*i2 + 1024*i0 + i1]
        %4 = kernel.load %total[i1]
        %5 = arith.addf %4, %2 : f32
        kernel.store %5, %total[i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.for i1 in 0 to 1024 map vector tile 1024 {
      %6 = kernel.load %total[i1]
      kernel.store %6, %p[1024*i2 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @columns
// CHECK-SAME: per_thread 64
// CHECK: kernel.local carried
// CHECK: kernel.for i3 in 0 to 1 map vector tile 8 {
// CHECK-NEXT: kernel.for i1 in 0 to 1024 map vector tile 1024 {
// CHECK: kernel.for i4 in 0 to 2 {
// CHECK-NEXT: kernel.for i0 in 8*i4 to 8*i4 + 8 map vector tile 8 {
// CHECK: kernel.store add atomic %[[V:.*]], %total[i1]
// CHECK: kernel.for i3 in 0 to 1 map vector tile 8 {

// -----

// What a row hands on otherwise, here a maximum, is no sum: rows stay one by one.

kernel.func @largest(%x: !kernel.buffer<f32, 16384>, %p: !kernel.buffer<f32, 1024>) target "cuda:90" per_thread 16 {
  kernel.for i2 in 0 to 1 map grid {
    %top = kernel.local : !kernel.buffer<f32, 1024, local>
    kernel.for i1 in 0 to 1024 map vector tile 1024 {
      %0 = arith.constant 0.0 : f32
      kernel.store %0, %top[i1]
      kernel.yield
    }
    kernel.for i0 in 0 to 16 {
      kernel.for i1 in 0 to 1024 map vector tile 1024 {
        %1 = kernel.load %x[1024*i0 + i1]
        %2 = kernel.load %top[i1]
        %3 = arith.maximumf %2, %1 : f32
        kernel.store %3, %top[i1]
        kernel.yield
      }
      kernel.yield
    }
    kernel.for i1 in 0 to 1024 map vector tile 1024 {
      %4 = kernel.load %top[i1]
      kernel.store %4, %p[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @largest
// CHECK: kernel.for i0 in 0 to 16 {
