// RUN: inductile-opt %s --split-input-file --verify-each -p host-reuse | filecheck %s

// The second kernel writes over its input, at the same place and later than it reads; so does the third, row by row.
// The first must not: its input is an argument. The last one does: its input is returned too, so it may not.

kernel.func @exp(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @tanh(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.tanh %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @center(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 4 {
    %m = kernel.reduce max i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = arith.subf %v, %m : f32
      kernel.store %w, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @sin(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.sin %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @chain(%x: !aten.tensor<32xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<32xf32>) symbols [] {
  %a = host.empty : !aten.tensor<32xf32>
  host.launch @exp(%x, %a)
  %b = host.empty : !aten.tensor<32xf32>
  host.launch @tanh(%a, %b)
  %c = host.empty : !aten.tensor<32xf32>
  host.launch @center(%b, %c)
  %d = host.empty : !aten.tensor<32xf32>
  host.launch @sin(%c, %d)
  host.return %c, %d
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @exp(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 32 {
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       %w = math.exp %v : f32
// CHECK-NEXT:       kernel.store %w, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @tanh(%y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 32 {
// CHECK-NEXT:       %v = kernel.load %y[i0]
// CHECK-NEXT:       %w = math.tanh %v : f32
// CHECK-NEXT:       kernel.store %w, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @center(%y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 4 {
// CHECK-NEXT:       %m = kernel.reduce max i1 in 0 to 8 {
// CHECK-NEXT:         %v = kernel.load %y[8*i0 + i1]
// CHECK-NEXT:         kernel.yield %v
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.for i1 in 0 to 8 {
// CHECK-NEXT:         %v_1 = kernel.load %y[8*i0 + i1]
// CHECK-NEXT:         %w = arith.subf %v_1, %m : f32
// CHECK-NEXT:         kernel.store %w, %y[8*i0 + i1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @sin(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 32 {
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       %w = math.sin %v : f32
// CHECK-NEXT:       kernel.store %w, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @chain(%x: !aten.tensor<32xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<32xf32>) {
// CHECK-NEXT:     %a = host.empty : !aten.tensor<32xf32>
// CHECK-NEXT:     host.launch @exp(%x, %a)
// CHECK-NEXT:     host.launch @tanh(%a)
// CHECK-NEXT:     host.launch @center(%a)
// CHECK-NEXT:     %d = host.empty : !aten.tensor<32xf32>
// CHECK-NEXT:     host.launch @sin(%a, %d)
// CHECK-NEXT:     host.return %a, %d
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Not in place: a reversed read, a row read behind the write, one launch of two whose input lives on. Then allocations
// take over what died, as a view when the type differs, but never what is returned or still has a view.

kernel.func @reverse(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[-i0 + 31]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @late(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %c = arith.constant 1.0 : f32
    kernel.store %c, %y[i0]
    %v = kernel.load %x[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @negate(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = arith.negf %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @take_over(%x: !aten.tensor<32xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<32xf32>) symbols [] {
  %a = host.empty : !aten.tensor<32xf32>
  host.launch @reverse(%x, %a)
  %b = host.empty : !aten.tensor<32xf32>
  host.launch @reverse(%a, %b)
  %c = host.empty : !aten.tensor<4x8xf32>
  host.launch @reverse(%b, %c)
  %d = host.empty : !aten.tensor<32xf32>
  host.launch @negate(%c, %d)
  %v = host.view %d offset 8 : !aten.tensor<8xf32>
  %e = host.empty : !aten.tensor<32xf32>
  host.launch @negate(%b, %e)
  %f = host.empty : !aten.tensor<64xf16>
  host.copy %e to %f
  %g = aten.relu(%v) : !aten.tensor<8xf32>
  host.return %e, %g
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @reverse(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 32 {
// CHECK-NEXT:       %v = kernel.load %x[-i0 + 31]
// CHECK-NEXT:       kernel.store %v, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @late(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 32 {
// CHECK-NEXT:       %c = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:       kernel.store %c, %y[i0]
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.func @negate(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 32 {
// CHECK-NEXT:       %v = kernel.load %x[i0]
// CHECK-NEXT:       %w = arith.negf %v : f32
// CHECK-NEXT:       kernel.store %w, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @take_over(%x: !aten.tensor<32xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<32xf32>) {
// CHECK-NEXT:     %a = host.empty : !aten.tensor<32xf32>
// CHECK-NEXT:     host.launch @reverse(%x, %a)
// CHECK-NEXT:     %b = host.empty : !aten.tensor<32xf32>
// CHECK-NEXT:     host.launch @reverse(%a, %b)
// CHECK-NEXT:     %c = host.view %a offset 0 : !aten.tensor<4x8xf32>
// CHECK-NEXT:     host.launch @reverse(%b, %c)
// CHECK-NEXT:     %d = host.empty : !aten.tensor<32xf32>
// CHECK-NEXT:     host.launch @negate(%c, %d)
// CHECK-NEXT:     %v = host.view %d offset 8 : !aten.tensor<8xf32>
// CHECK-NEXT:     host.launch @negate(%b, %a)
// CHECK-NEXT:     %f = host.view %b offset 0 : !aten.tensor<64xf16>
// CHECK-NEXT:     host.copy %a to %f
// CHECK-NEXT:     %g = aten.relu(%v) : !aten.tensor<8xf32>
// CHECK-NEXT:     host.return %a, %g
// CHECK-NEXT:   }
// CHECK-NEXT: }
