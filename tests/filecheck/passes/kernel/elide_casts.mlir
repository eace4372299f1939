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
// CHECK-LABEL: kernel.func @row
// CHECK: %row = kernel.local : !kernel.buffer<f32, 8, local>
// CHECK: %e = math.exp %w : f32
// CHECK-NEXT: kernel.store %e, %row[i1]
// CHECK-NEXT: kernel.yield %e
// CHECK: %v_1 = scalar.narrow %w_1 : f32 to bf16
// CHECK-NEXT: kernel.store %v_1, %z[8*i0 + i1]
// CHECK-NEXT: %q = arith.divf %w_1, %t : f32
// CHECK: kernel.store %n, %y[8*i0 + i1]

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

// CHECK-LABEL: kernel.func @mixed
// CHECK: kernel.local : !kernel.buffer<f16, 8, local>
// CHECK: %n = scalar.narrow %e : f32 to f16
// CHECK-NEXT: kernel.store %n, %row[i1]
// CHECK: kernel.store %u, %row[i1 + 4]
// CHECK: kernel.load %row[-i1 + 7]
// CHECK-NEXT: scalar.widen

// -----

// The piece of a `cat` that is computed stays in f32: the select chooses between wide values. One that something else
// wants narrow, or where no rounding is saved, stays as it is.

kernel.func @piece(%x: !kernel.buffer<bf16, 8>, %y: !kernel.buffer<bf16, 8>, %z: !kernel.buffer<bf16, 8>) {
  kernel.for i in 0 to 8 {
    %zero = arith.constant 0.0 : bf16
    %a = kernel.index i
    %b = kernel.index 4
    %first = arith.cmpi slt, %a, %b : i64
    %second = arith.cmpi sge, %a, %b : i64
    %v = kernel.load %x[i + 4] if %first else %zero
    %w = scalar.widen %v : bf16 to f32
    %e = math.exp %w : f32
    %n = scalar.narrow %e : f32 to bf16
    %s = arith.select %first, %n, %zero : bf16
    %u = kernel.load %x[i - 4] if %second else %zero
    %p = arith.select %second, %u, %s : bf16
    %q = scalar.widen %p : bf16 to f32
    %r = math.exp %q : f32
    %t = scalar.narrow %r : f32 to bf16
    kernel.store %t, %y[i]
    %k = arith.select %first, %n, %u : bf16
    kernel.store %k, %z[i]
    %l = scalar.widen %k : bf16 to f32
    %m = math.exp %l : f32
    %o = scalar.narrow %m : f32 to bf16
    kernel.store %o, %z[i]
    %c = arith.select %first, %u, %v : bf16
    %d = scalar.widen %c : bf16 to f32
    %f = math.exp %d : f32
    %g = scalar.narrow %f : f32 to bf16
    kernel.store %g, %z[i]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @piece
// CHECK: %n = scalar.narrow %e : f32 to bf16
// CHECK-NEXT: %u = kernel.load %x[i - 4] if %second else %zero
// CHECK-NEXT: %0 = scalar.widen %u : bf16 to f32
// CHECK-NEXT: %1 = scalar.widen %zero : bf16 to f32
// CHECK-NEXT: %2 = arith.select %first, %e, %1 : f32
// CHECK-NEXT: %q = arith.select %second, %0, %2 : f32

// -----

// The larger of a number and zero is a number of the narrow type, if the number is: a cast of it rounds nothing.

kernel.func @chosen(%x: !kernel.buffer<bf16, 8>, %y: !kernel.buffer<bf16, 8>) {
  kernel.for i in 0 to 8 {
    %v = kernel.load %x[i]
    %w = scalar.widen %v : bf16 to f32
    %zero = arith.constant 0.000000e+00 : f32
    %below = arith.cmpf olt, %w, %zero : f32
    %r = arith.select %below, %zero, %w : f32
    %n = scalar.cast %r : f32 to bf16
    %u = scalar.widen %n : bf16 to f32
    %e = math.exp %u : f32
    %c = scalar.cast %e : f32 to bf16
    %d = scalar.widen %c : bf16 to f32
    %f = math.exp %d : f32
    %o = scalar.narrow %f : f32 to bf16
    kernel.store %o, %y[i]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @chosen
// CHECK: %r = arith.select %below, %zero, %w : f32
// CHECK-NEXT: %e = math.exp %r : f32
// CHECK-NEXT: %c = scalar.cast %e : f32 to bf16
// ROUND-LABEL: kernel.func @chosen(
// ROUND: scalar.cast %r : f32 to bf16
