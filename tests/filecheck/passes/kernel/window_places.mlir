// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-unroll-windows | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cuda:90 -p kernel-unroll-windows | filecheck %s --check-prefix=GPU

// Where the largest element of a window stands: lanes carry a distance of 32 bits. The first element whose mask holds
// is found before the values are looked at.
kernel.func @padded(%x: !kernel.buffer<f32, 272>, %y: !kernel.buffer<f32, 272>, %p: !kernel.buffer<i64, 272>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 34 {
      %v, %i = kernel.reduce argmax i2 in 0 to 2 {
        %place = kernel.index i1 + i2 - 1
        %zero = arith.constant 0 : i64
        %ok = arith.cmpi sge, %place, %zero : i64
        %outside = arith.constant 0xff800000 : f32
        %a = kernel.load %x[34*i0 + i1 + i2 - 1] if %ok else %outside
        %nowhere = arith.constant 9223372036854775807 : i64
        %at = arith.select %ok, %place, %nowhere : i64
        kernel.yield %a, %at
      }
      kernel.store %v, %y[34*i0 + i1]
      kernel.store %i, %p[34*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @padded
// CHECK-NOT:     kernel.reduce
// CHECK:         [[NONE:%[0-9a-z_]+]] = arith.constant -1 : i32
// CHECK:         [[SECOND:%[0-9a-z_]+]] = arith.select {{%[0-9a-z_]+}}, {{%[0-9a-z_]+}}, [[NONE]] : i32
// CHECK:         [[FIRST:%[0-9a-z_]+]] = arith.select %ok, {{%[0-9a-z_]+}}, [[SECOND]] : i32
// CHECK:         arith.cmpf ogt, [[NEXT:%[0-9a-z_]+]], %a : f32
// CHECK:         arith.cmpf uno, %a, %a : f32
// CHECK:         arith.extsi {{%[0-9a-z_]+}} : i32 to i64
// CHECK:         kernel.store
// GPU-LABEL:   kernel.func @padded
// GPU:           kernel.reduce argmax

// -----

// Places that fall, or that are loaded, stay a reduction.
kernel.func @falling(%x: !kernel.buffer<f32, 272>, %y: !kernel.buffer<f32, 264>, %p: !kernel.buffer<i64, 264>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 33 {
      %v, %i = kernel.reduce argmin i2 in 0 to 2 {
        %place = kernel.index i1 - i2
        %a = kernel.load %x[34*i0 + i1 + i2]
        kernel.yield %a, %place
      }
      kernel.store %v, %y[33*i0 + i1]
      kernel.store %i, %p[33*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @falling
// CHECK:         kernel.reduce argmin
// GPU-LABEL:   kernel.func @falling
