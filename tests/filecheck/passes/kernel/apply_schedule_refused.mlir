// RUN: not inductile-opt %s --split-input-file -p kernel-apply-schedule 2>&1 | filecheck %s

// What would change the answer, or does not fit, is refused, and the dependence is told.

// CHECK: transform.interchange fails: kernel.for i0 of @skewed: a dependence would run backwards:
// CHECK-SAME: kernel.store %y[32*i0 + i1] and kernel.load %y[32*i0 + i1 - 31] may meet in iterations (<, >)
kernel.func @skewed(%y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 1 to 32 {
    kernel.for i1 in 0 to 31 {
      %v = kernel.load %y[32*i0 + i1 - 31]
      kernel.store %v, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "skewed" loops 2
  %a, %b = transform.interchange %i, %j order [1, 0]
}

// -----

// CHECK: transform.tile fails: kernel.for i0 of @skewed_tile: blocks would run before what they depend on
kernel.func @skewed_tile(%y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 1 to 32 {
    kernel.for i1 in 0 to 31 {
      %v = kernel.load %y[32*i0 + i1 - 31]
      kernel.store %v, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "skewed_tile" loops 2
  %a, %b, %c, %d = transform.tile %i, %j sizes [4, 4]
}

// -----

// CHECK: transform.tile fails: kernel.scan i0 of @scan: the loop over i0 in 0 to 64 is a scan, which hands its value
kernel.func @scan(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) {
  kernel.scan sum i0 in 0 to 64 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  } then {
  ^bb0(%c: f32):
    kernel.store %c, %y[i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "scan"
  %a, %b = transform.tile %i sizes [8]
}

// -----

// CHECK: transform.vectorize fails: kernel.for i0 of @recurrence: iterations of the loop over i0 in 1 to 64 depend on one
// CHECK-SAME: another: kernel.store %y[i0] and kernel.load %y[i0 - 1] may meet in iterations (<)
kernel.func @recurrence(%y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 1 to 64 {
    %v = kernel.load %y[i0 - 1]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "recurrence"
  transform.vectorize %i lanes 8
}

// -----

// CHECK: transform.fuse fails: kernel.for i0 of @backwards: the loop over i0 in 0 to 63 and the loop over i1 in 0 to 63
// CHECK-SAME: cannot be one: an iteration of the second, or an op between them, needs what the first has only at its end
kernel.func @backwards(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 63 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.for i1 in 0 to 63 {
    %v = kernel.load %y[i1 + 1]
    kernel.store %v, %z[i1]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "backwards" nest 0
  %j = transform.match kernel "backwards" nest 1
  %f = transform.fuse %i, %j
}

// -----

// CHECK: transform.unroll_and_jam fails: kernel.for i0 of @rows: two copies of the loop over i1
kernel.func @rows(%y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 1 to 31 {
    %s = kernel.reduce sum i1 in 0 to 32 {
      %v = kernel.load %y[32*i0 + i1 - 32]
      kernel.yield %v
    }
    kernel.store %s, %y[32*i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "rows"
  %b = transform.unroll_and_jam %i factor 2
}

// -----

// CHECK: transform.parallelize fails: kernel.for i1 of @inner: the loop over i1 in 0 to 4 is not the outermost loop
kernel.func @inner(%y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 4 {
      %v = arith.constant 0.0 : f32
      kernel.store %v, %y[4*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "inner" loops 2
  transform.parallelize %j
}

// -----

// CHECK: transform.match fails: 2 nests fit; say which by `contains`, `writes`, or `nest` and its number
kernel.func @two(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.for i0 in 0 to 4 {
    %v = kernel.load %y[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "two"
}

// -----

// CHECK: transform.match fails: no kernel is named 'three'; the kernels are: @one
kernel.func @one(%x: !kernel.buffer<f32, 4>) {
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "three"
}

// -----

// CHECK: transform.vectorize fails: the loop %k is no more, for an op before has rebuilt it; match it again
kernel.func @gone(%x: !kernel.buffer<f32, 16>, %y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 4 {
      %v = kernel.load %x[4*i0 + i1]
      kernel.store %v, %y[4*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %k = transform.match kernel "gone" loops 2
  %u = transform.unroll %i factor 2
  transform.vectorize %k lanes 4
}
