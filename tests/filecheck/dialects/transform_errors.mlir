// RUN: inductile-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{transform.vectorize uses %i, which transform.tile has consumed}}
transform.sequence {
  %i = transform.match kernel "k"
  %a, %b = transform.tile %i sizes [4]
  transform.vectorize %i lanes 4
}

// -----

transform.sequence {
  %i = transform.match kernel "k"
  // expected-error@+1 {{has 3 lanes, which is no power of two}}
  transform.vectorize %i lanes 3
}

// -----

transform.sequence {
  %i, %j = transform.match kernel "k" loops 2
  // expected-error@+1 {{has 1 sizes for 2 loops}}
  %a, %b, %c, %d = transform.tile %i, %j sizes [4]
}

// -----

transform.sequence {
  %i = transform.match kernel "k"
  // expected-error@+1 {{maps by lanes; known: grid, parallel, vector, serial, unroll}}
  transform.map %i by lanes
}

// -----

kernel.func @nested(%x: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 2 {
    // expected-error@+1 {{axis i1 is pinned inside of another loop: the outermost loop pins a nest}}
    kernel.for i1 in 0 to 2 pinned {
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
