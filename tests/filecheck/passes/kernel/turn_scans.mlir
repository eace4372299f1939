// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-turn-scans | inductile-opt - --split-input-file | filecheck %s
// RUN: inductile-opt %s --split-input-file -p kernel-turn-scans -t triton | filecheck %s --check-prefix=TRITON

// A scan that runs backwards through memory has its first element in the last lane. Lanes outside add nothing.

kernel.func @backwards(%x: !kernel.buffer<f32, 800>, %y: !kernel.buffer<f32, 800>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 8 map grid {
    kernel.scan sum i1 in 0 to 100 map vector tile 128 {
      %0 = kernel.load %x[100*i0 - i1 + 99]
      kernel.yield %0
    } then {
    ^bb0(%1: f32):
      kernel.store %1, %y[100*i0 - i1 + 99]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @backwards
// CHECK: kernel.scan sum i1 in 0 to 100 map vector tile 128 turned {
// CHECK-NEXT: kernel.load %x[100*i0 - i1 + 99]
// TRITON-LABEL: def backwards(
// TRITON: x_value = tl.load(x + (100 * i0 + i1), mask=i1_mask)
// TRITON: x_value_inside = tl.where(i1_mask, x_value, 0.0)
// TRITON: tl.associative_scan(x_value_inside, 0, prelude.add, reverse=True)
// TRITON: tl.store(y + (100 * i0 + i1), running, mask=i1_mask)

// -----

// One that runs forwards as often as backwards stays as it is.

kernel.func @both(%x: !kernel.buffer<f32, 800>, %y: !kernel.buffer<f32, 800>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 8 map grid {
    kernel.scan sum i1 in 0 to 100 map vector tile 128 {
      %0 = kernel.load %x[100*i0 - i1 + 99]
      kernel.yield %0
    } then {
    ^bb0(%1: f32):
      kernel.store %1, %y[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @both
// CHECK: kernel.scan sum i1 in 0 to 100 map vector tile 128 {
