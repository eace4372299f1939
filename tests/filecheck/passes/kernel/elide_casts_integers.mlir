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
