// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-elide-casts | filecheck %s --check-prefixes=CHECK
// RUN: inductile-opt %s --split-input-file -p "kernel-elide-casts{emulate_precision_casts=true}" | filecheck %s --check-prefixes=ROUND

// A row and a scalar stay in f32; what goes to memory is rounded. A cast that the program wrote stays.

kernel.func @row(%x: !kernel.buffer<bf16, 80>, %y: !kernel.buffer<bf16, 80>, %z: !kernel.buffer<bf16, 80>) {
  kernel.for i0 in 0 to 10 {
    %row = kernel.local : !kernel.buffer<bf16, 8, local>
    %s = kernel.reduce sum i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      %e = math.exp %w : f32
      %n = scalar.narrow %e : f32 to bf16
      kernel.store %n, %row[i1]
      %u = scalar.widen %n : bf16 to f32
      kernel.yield %u
    }
    %c = scalar.cast %s : f32 to bf16
    %t = scalar.widen %c : bf16 to f32
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %row[i1]
      kernel.store %v, %z[8*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      %q = arith.divf %w, %t : f32
      %n = scalar.narrow %q : f32 to bf16
      kernel.store %n, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// ROUND: kernel.local : !kernel.buffer<bf16, 8, local>
// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @row(%x: !kernel.buffer<bf16, 80>, %y: !kernel.buffer<bf16, 80>, %z: !kernel.buffer<bf16, 80>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 10 {
// CHECK-NEXT:       %row = kernel.local : !kernel.buffer<f32, 8, local>
// CHECK-NEXT:       %s = kernel.reduce sum i1 in 0 to 8 {
// CHECK-NEXT:         %v = kernel.load %x[8*i0 + i1]
// CHECK-NEXT:         %w = scalar.widen %v : bf16 to f32
// CHECK-NEXT:         %e = math.exp %w : f32
// CHECK-NEXT:         kernel.store %e, %row[i1]
// CHECK-NEXT:         kernel.yield %e
// CHECK-NEXT:       }
// CHECK-NEXT:       %c = scalar.cast %s : f32 to bf16
// CHECK-NEXT:       %t = scalar.widen %c : bf16 to f32
// CHECK-NEXT:       kernel.for i1 in 0 to 8 {
// CHECK-NEXT:         %w_1 = kernel.load %row[i1]
// CHECK-NEXT:         %v_1 = scalar.narrow %w_1 : f32 to bf16
// CHECK-NEXT:         kernel.store %v_1, %z[8*i0 + i1]
// CHECK-NEXT:         %q = arith.divf %w_1, %t : f32
// CHECK-NEXT:         %n = scalar.narrow %q : f32 to bf16
// CHECK-NEXT:         kernel.store %n, %y[8*i0 + i1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Stores of other origin keep the buffer narrow.

kernel.func @mixed(%x: !kernel.buffer<f16, 8>, %y: !kernel.buffer<f16, 8>) {
  %row = kernel.local : !kernel.buffer<f16, 8, local>
  kernel.for i1 in 0 to 4 {
    %v = kernel.load %x[i1]
    %w = scalar.widen %v : f16 to f32
    %e = math.exp %w : f32
    %n = scalar.narrow %e : f32 to f16
    kernel.store %n, %row[i1]
    %u = kernel.load %x[i1 + 4]
    kernel.store %u, %row[i1 + 4]
    kernel.yield
  }
  kernel.for i1 in 0 to 8 {
    %v = kernel.load %row[-i1 + 7]
    %w = scalar.widen %v : f16 to f32
    %e = math.exp %w : f32
    %n = scalar.narrow %e : f32 to f16
    kernel.store %n, %y[i1]
    kernel.yield
  }
  kernel.yield
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @mixed(%x: !kernel.buffer<f16, 8>, %y: !kernel.buffer<f16, 8>) {
// CHECK-NEXT:     %row = kernel.local : !kernel.buffer<f16, 8, local>
// CHECK-NEXT:     kernel.for i1 in 0 to 4 {
// CHECK-NEXT:       %v = kernel.load %x[i1]
// CHECK-NEXT:       %w = scalar.widen %v : f16 to f32
// CHECK-NEXT:       %e = math.exp %w : f32
// CHECK-NEXT:       %n = scalar.narrow %e : f32 to f16
// CHECK-NEXT:       kernel.store %n, %row[i1]
// CHECK-NEXT:       %u = kernel.load %x[i1 + 4]
// CHECK-NEXT:       kernel.store %u, %row[i1 + 4]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.for i1 in 0 to 8 {
// CHECK-NEXT:       %v_1 = kernel.load %row[-i1 + 7]
// CHECK-NEXT:       %w_1 = scalar.widen %v_1 : f16 to f32
// CHECK-NEXT:       %e_1 = math.exp %w_1 : f32
// CHECK-NEXT:       %n_1 = scalar.narrow %e_1 : f32 to f16
// CHECK-NEXT:       kernel.store %n_1, %y[i1]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
