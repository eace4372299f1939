// RUN: inductile-opt %s --split-input-file --verify-each ir -p kernel-apply-schedule | filecheck %s

// Blocks of both loops: those over blocks come first.

kernel.func @tile(%x: !kernel.buffer<f32, 5000>, %y: !kernel.buffer<f32, 5000>) {
  kernel.for i0 in 0 to 50 {
    kernel.for i1 in 0 to 100 {
      %v = kernel.load %x[100*i0 + i1]
      kernel.store %v, %y[50*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "til?" loops 2
  %a, %b, %c, %d = transform.tile %i, %j sizes [8, 20]
}

// CHECK-LABEL: @tile
// CHECK-NEXT: kernel.for i2 in 0 to 7 pinned {
// CHECK-NEXT: kernel.for i3 in 0 to 5 {
// CHECK-NEXT: kernel.for i0 in 8*i2 to min(8*i2 + 8, 50) {
// CHECK-NEXT: kernel.for i1 in 20*i3 to 20*i3 + 20 {
// CHECK-NOT: transform

// -----

// A reduction is strip-mined by one over the results of its blocks.

kernel.func @strip(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %m = kernel.reduce max i1 in 0 to 1024 {
      %v = kernel.load %x[1024*i0 + i1]
      kernel.yield %v
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "strip" loops 2
  %block, %k = transform.tile %j sizes [32]
  transform.vectorize %k lanes 8
}

// CHECK-LABEL: @strip
// CHECK: kernel.for i0 in 0 to 4 pinned {
// CHECK-NEXT: %m = kernel.reduce max i2 in 0 to 32 {
// CHECK-NEXT: kernel.reduce max i1 in 32*i2 to 32*i2 + 32 map vector tile 8 {
// CHECK: kernel.store %m, %y[i0]

// -----

// `y[i, j] = y[i - 1, j - 1]` is the same in both orders.

kernel.func @diagonal(%y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 1 to 32 {
    kernel.for i1 in 1 to 32 {
      %v = kernel.load %y[32*i0 + i1 - 33]
      kernel.store %v, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "diagonal" writes "y" loops 2
  %a, %b = transform.interchange %i, %j order [1, 0]
}

// CHECK-LABEL: @diagonal
// CHECK-NEXT: kernel.for i1 in 1 to 32 pinned {
// CHECK-NEXT: kernel.for i0 in 1 to 32 {

// -----

// What is left of an axis has a loop of its own. Of sizes that are symbols nobody knows whether something is left.

kernel.func @unroll(%x: !kernel.buffer<f32, s0>, %y: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "unroll"
  %b = transform.unroll %i factor 2
}

// CHECK-LABEL: @unroll
// CHECK-NEXT: kernel.for i1 in 0 to s0 floordiv 2 pinned {
// CHECK-NEXT: %v = kernel.load %x[2*i1]
// CHECK-NEXT: kernel.store %v, %y[2*i1]
// CHECK-NEXT: %v_1 = kernel.load %x[2*i1 + 1]
// CHECK-NEXT: kernel.store %v_1, %y[2*i1 + 1]
// CHECK: kernel.for i0 in 2*(s0 floordiv 2) to s0 {

// -----

// The rows of a product that are computed together read a column once.

kernel.func @jam(%a: !kernel.buffer<f32, 512>, %b: !kernel.buffer<f32, 512>, %y: !kernel.buffer<f32, 256>) {
  kernel.for i0 in 0 to 16 {
    kernel.for i1 in 0 to 16 {
      %s = kernel.reduce sum i2 in 0 to 32 {
        %u = kernel.load %a[32*i0 + i2]
        %v = kernel.load %b[16*i2 + i1]
        %p = arith.mulf %u, %v : f32
        kernel.yield %p
      }
      kernel.store %s, %y[16*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "jam" contains "kernel.reduce"
  %rows = transform.unroll_and_jam %i factor 2
  %j, %k = transform.inside %rows loops 2
  transform.vectorize %j lanes 16
  transform.parallelize %rows grain 4
}

// CHECK-LABEL: @jam
// CHECK-NEXT: kernel.for i3 in 0 to 8 map parallel tile 4 pinned {
// CHECK-NEXT: kernel.for i1 in 0 to 16 map vector tile 16 {
// CHECK-NEXT: kernel.reduce [sum, sum] i2 in 0 to 32 {
// CHECK: kernel.load %b
// CHECK-NOT: kernel.load %b
// CHECK: kernel.yield %p, %p_1

// -----

// Each iteration of the second loop reads what the first one has stored by then.

kernel.func @fuse(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 1 to 64 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.for i1 in 1 to 64 {
    %v = kernel.load %y[i1 - 1]
    kernel.store %v, %z[i1]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i = transform.match kernel "fuse" nest 0
  %j = transform.match kernel "fuse" nest 1
  %f = transform.fuse %i, %j
}

// CHECK-LABEL: @fuse
// CHECK-NEXT: kernel.for i0 in 1 to 64 pinned {
// CHECK-NEXT: kernel.load %x[i0]
// CHECK-NEXT: kernel.store %v, %y[i0]
// CHECK-NEXT: kernel.load %y[i0 - 1]
// CHECK-NEXT: kernel.store %v_1, %z[i0]
// CHECK-NOT: kernel.for

// -----

// Mappings of any target, and a nest that stays as it is.

kernel.func @map(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.store %v, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @pin(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
transform.sequence {
  %i, %j = transform.match kernel "map" loops 2
  transform.map %i by grid
  transform.map %j by grid tile 64
  %p = transform.match kernel "pin"
  transform.pin %p
}

// CHECK-LABEL: @map
// CHECK-NEXT: kernel.for i0 in 0 to 64 map grid pinned {
// CHECK-NEXT: kernel.for i1 in 0 to 64 map grid tile 64 {
// CHECK-LABEL: @pin
// CHECK-NEXT: kernel.for i0 in 0 to 4096 pinned {
