// RUN: inductile-opt %s -p kernel-elide-casts | filecheck %s
// RUN: inductile-opt %s -p kernel-elide-casts --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s -p 'kernel-elide-casts{emulate_precision_casts=true}' | filecheck %s --check-prefix=EMULATED

// 16 bits hold integers of 8 bits exactly, those of 16 not, and a product on matrix units reads the narrow float.
kernel.func @casts(%x: !kernel.buffer<i8, 64>, %u: !kernel.buffer<i16, 64>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i in 0 to 64 {
    %a = kernel.load %x[i]
    %b = scalar.cast %a : i8 to bf16
    %c = scalar.widen %b : bf16 to f32
    %d = kernel.load %u[i]
    %e = scalar.cast %d : i16 to bf16
    %f = scalar.widen %e : bf16 to f32
    %n = kernel.load %x[63 - i]
    %m = scalar.cast %n : i8 to bf16
    %w = scalar.widen %m : bf16 to f32
    %p = arith.mulf %w, %w {precision = "bf16"} : f32
    %s = arith.addf %c, %f : f32
    %t = arith.addf %s, %p : f32
    kernel.store %t, %y[i]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<64xi8>, %u: !aten.tensor<64xi16>) -> (!aten.tensor<64xf32>) {
  %y = host.empty : !aten.tensor<64xf32>
  host.launch @casts(%x, %u, %y)
  host.return %y
}
// CHECK-LABEL: @casts
// CHECK: scalar.cast %a : i8 to f32
// CHECK: scalar.cast %d : i16 to bf16
// CHECK: scalar.cast %n : i8 to bf16
// EMULATED: scalar.cast %a : i8 to bf16

// A whole number that was clamped to a byte stays a float, and what is no number becomes 0; a fraction is cast.
kernel.func @steps(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 64>) {
  %zero = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %point = arith.constant 17.0 : f32
  kernel.for i in 0 to 64 {
    %a = kernel.load %x[i]
    %r = math.roundeven %a : f32
    %v = arith.addf %r, %point : f32
    %less = arith.cmpf olt, %v, %zero : f32
    %low = arith.select %less, %zero, %v : f32
    %more = arith.cmpf ogt, %low, %most : f32
    %high = arith.select %more, %most, %low : f32
    %byte = scalar.cast %high : f32 to ui8
    %back = scalar.cast %byte : ui8 to f32
    kernel.store %back, %y[i]
    %less2 = arith.cmpf olt, %a, %zero : f32
    %low2 = arith.select %less2, %zero, %a : f32
    %more2 = arith.cmpf ogt, %low2, %most : f32
    %high2 = arith.select %more2, %most, %low2 : f32
    %byte2 = scalar.cast %high2 : f32 to ui8
    %back2 = scalar.cast %byte2 : ui8 to f32
    kernel.store %back2, %z[i]
    kernel.yield
  }
  kernel.yield
}
host.func @go(%x: !aten.tensor<64xf32>) -> (!aten.tensor<64xf32>, !aten.tensor<64xf32>) {
  %y = host.empty : !aten.tensor<64xf32>
  %z = host.empty : !aten.tensor<64xf32>
  host.launch @steps(%x, %y, %z)
  host.return %y, %z
}
// CHECK-LABEL: @steps
// CHECK: %[[MORE:.*]] = arith.cmpf ogt, %v, %zero : f32
// CHECK-NEXT: %[[LEAST:.*]] = arith.select %[[MORE]], %v, %zero : f32
// CHECK-NEXT: %[[MOST:.*]] = arith.cmpf ogt, %[[LEAST]], %most : f32
// CHECK-NEXT: %[[STEP:.*]] = arith.select %[[MOST]], %most, %[[LEAST]] : f32
// CHECK-NEXT: kernel.store %[[STEP]], %y[i]
// CHECK: scalar.cast %high2 : f32 to ui8
