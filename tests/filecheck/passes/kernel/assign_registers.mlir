// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-assign-registers | inductile-opt - --split-input-file | filecheck %s

// Each lane reads what it stored. A sum that a loop over rows adds to is carried. What lanes read of each other has to be
// in memory.

kernel.func @rows(%x: !kernel.buffer<f32, 1600>, %y: !kernel.buffer<f32, 16>) target "cuda:90" {
  kernel.for i0 in 0 to 1 map grid {
    %total = kernel.local : !kernel.buffer<f32, 16, local>
    kernel.for i1 in 0 to 16 map vector tile 16 {
      %zero = arith.constant 0.0 : f32
      kernel.store %zero, %total[i1]
      kernel.yield
    }
    kernel.for i2 in 0 to 100 {
      kernel.for i3 in 0 to 16 map vector tile 16 {
        %v = kernel.load %x[16*i2 + i3]
        %old = kernel.load %total[i3]
        %new = arith.addf %old, %v : f32
        kernel.store %new, %total[i3]
        kernel.yield
      }
      kernel.yield
    }
    %row = kernel.local : !kernel.buffer<f32, 16, local>
    kernel.for i4 in 0 to 16 map vector tile 16 {
      %t = kernel.load %total[i4]
      kernel.store %t, %row[i4]
      kernel.yield
    }
    %turned = kernel.local : !kernel.buffer<f32, 16, local>
    kernel.for i5 in 0 to 16 map vector tile 16 {
      %t = kernel.load %row[i5]
      kernel.store %t, %turned[i5]
      kernel.yield
    }
    kernel.for i6 in 0 to 16 map vector tile 16 {
      %t = kernel.load %turned[15 - i6]
      kernel.store %t, %y[i6]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<1600xf32, device = "cuda:0">, %y: !aten.tensor<16xf32, device = "cuda:0">) -> (!aten.tensor<16xf32, device = "cuda:0">) {
  host.launch @rows(%x, %y)
  host.return %y
}

// CHECK-LABEL: @rows
// CHECK: %total = kernel.local carried : !kernel.buffer<f32, 16, local>
// CHECK: %row = kernel.local tile : !kernel.buffer<f32, 16, local>
// CHECK: %turned = kernel.local : !kernel.buffer<f32, 16, local>
