// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-reorder | filecheck %s

// A channels-last image: the channel is innermost in memory.

kernel.func @channels_last(%x: !kernel.buffer<f32, 960>, %y: !kernel.buffer<f32, 960>) {
  kernel.for i0 in 0 to 2 {
    kernel.for i1 in 0 to 8 {
      kernel.for i2 in 0 to 6 {
        kernel.for i3 in 0 to 10 {
          %v = kernel.load %x[480*i0 + 80*i2 + 8*i3 + i1]
          kernel.store %v, %y[480*i0 + 80*i2 + 8*i3 + i1]
          kernel.yield
        }
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @channels_last
// CHECK-NEXT: kernel.for i0 in 0 to 2 {
// CHECK-NEXT: kernel.for i2 in 0 to 6 {
// CHECK: kernel.for i1 in 0 to 8 {

// -----

// Reductions of a monoid commute, whatever they yield; one with a combination of its own does not. A write decides
// between accesses that disagree.

kernel.func @sums(%x: !kernel.buffer<f32, 48>, %y: !kernel.buffer<f32, 50>) {
  %a, %b = kernel.reduce argmax i0 in 0 to 6 {
    %c, %d = kernel.reduce argmax i1 in 0 to 8 {
      %v = kernel.load %x[6*i1 + i0]
      %k = kernel.index 6*i1 + i0
      kernel.yield %v, %k
    }
    kernel.yield %c, %d
  }
  kernel.store %a, %y[48]
  %one = arith.constant 1.0 : f32
  %e = kernel.reduce custom init(%one) i0 in 0 to 6 {
    %f = kernel.reduce custom init(%one) i1 in 0 to 8 {
      %v = kernel.load %x[6*i1 + i0]
      kernel.yield %v
    } combine {
    ^bb0(%p: f32, %q: f32):
      %r = arith.mulf %p, %q : f32
      kernel.yield %r
    }
    kernel.yield %f
  } combine {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %p, %q : f32
    kernel.yield %r
  }
  kernel.store %e, %y[49]
  kernel.for i0 in 0 to 6 {
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      kernel.store %v, %y[6*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @sums
// CHECK-NEXT: %a, %b = kernel.reduce argmax i1 in 0 to 8 {
// CHECK-NEXT: %c, %d = kernel.reduce argmax i0 in 0 to 6 {
// CHECK-NEXT: %v = kernel.load %x[6*i1 + i0]
// CHECK: kernel.for i1 in 0 to 8 {
// CHECK-NEXT: kernel.for i0 in 0 to 6 {
// CHECK-NEXT: %v_2 = kernel.load %x[8*i0 + i1]

// -----

// Writes whose order matters.

kernel.func @ordered(%x: !kernel.buffer<f32, 48>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 6 {
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[6*i1 + i0]
      kernel.store ordered %v, %y[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @ordered
// CHECK-NEXT: kernel.for i0 in 0 to 6 {
// CHECK-NEXT: kernel.for i1 in 0 to 8 {
// CHECK-NEXT: %v = kernel.load %x[6*i1 + i0]
// CHECK-NEXT: kernel.store ordered %v, %y[i1]

// -----

// Both outer axes jump over pages. Small tables move along the channels only, which does not make up for walking
// through memory in order.

kernel.func @images(%s: !kernel.buffer<f32, 256>, %b: !kernel.buffer<f32, 256>, %x: !kernel.buffer<f32, 3211264>, %y: !kernel.buffer<f32, 3211264>) {
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 256 {
      kernel.for i2 in 0 to 3136 {
        %v = kernel.load %s[i1]
        %w = kernel.load %b[i1]
        %u = kernel.load %x[802816*i0 + 3136*i1 + i2]
        %m = arith.mulf %u, %v : f32
        %a = arith.addf %m, %w : f32
        kernel.store %a, %y[802816*i0 + 3136*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @images(
// CHECK-NEXT:    kernel.for i0 in 0 to 4 {
// CHECK-NEXT:      kernel.for i1 in 0 to 256 {
// CHECK-NEXT:        kernel.for i2 in 0 to 3136 {

// -----
// Two numbers a byte: a step along i2 moves half a byte in one, and along i1 32 bytes.

kernel.func @packed(%x: !kernel.buffer<i8, 4096>, %s: !kernel.buffer<i8, 128>, %y: !kernel.buffer<i8, 8192>) {
  kernel.for i1 in 0 to 128 {
    kernel.for i2 in 0 to 64 {
      %b = kernel.load %x[32*i1 + i2 floordiv 2]
      %t = kernel.load %s[i1]
      %v = arith.andi %b, %t : i8
      kernel.store %v, %y[64*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @packed(
// CHECK-NEXT:    kernel.for i1 in 0 to 128 {
// CHECK-NEXT:      kernel.for i2 in 0 to 64 {
