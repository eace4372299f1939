// Small launches that become one: a scalar that two nests read, two dimensions and a transpose, a kernel without a nest.
kernel.func @scale(%s: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 3000>, %y: !kernel.buffer<f32, 3000>) {
  %one = arith.constant 1.0 : f32
  %v = kernel.load %s[0]
  %w = arith.addf %v, %one : f32
  kernel.for i0 in 0 to 3000 {
    %a = kernel.load %x[i0]
    %b = arith.mulf %a, %w : f32
    kernel.store %b, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @turn(%x: !kernel.buffer<f32, 3000>, %y: !kernel.buffer<f32, 3000>) {
  kernel.for i0 in 0 to 30 {
    kernel.for i1 in 0 to 100 {
      %a = kernel.load %x[i0 + 30*i1]
      kernel.store %a, %y[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @step(%s: !kernel.buffer<f32, 1>, %t: !kernel.buffer<f32, 1>) {
  %one = arith.constant 1.0 : f32
  %v = kernel.load %s[0]
  %w = arith.addf %v, %one : f32
  kernel.store %w, %t[0]
  kernel.yield
}
host.func @elementwise(%s: !aten.tensor<f32, device = "cuda:0">, %x: !aten.tensor<3000xf32, device = "cuda:0">) -> (!aten.tensor<f32, device = "cuda:0">, !aten.tensor<3000xf32, device = "cuda:0">, !aten.tensor<3000xf32, device = "cuda:0">) {
  %t = host.empty : !aten.tensor<f32, device = "cuda:0">
  %y = host.empty : !aten.tensor<3000xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<3000xf32, device = "cuda:0">
  host.launch @step(%s, %t)
  host.launch @turn(%x, %z)
  host.launch @scale(%s, %x, %y)
  host.return %t, %y, %z
}

// -----

// Reductions: rows, columns, all of a buffer, a row that a nest needs; one of a dynamic size.
kernel.func @rows(%x: !kernel.buffer<f32, 40*s0>, %y: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %r = kernel.reduce sum r0 in 0 to 40 {
      %a = kernel.load %x[40*i0 + r0]
      kernel.yield %a
    }
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @columns(%x: !kernel.buffer<f32, 4000>, %y: !kernel.buffer<f32, 40>) {
  kernel.for i0 in 0 to 40 {
    %r = kernel.reduce max r0 in 0 to 100 {
      %a = kernel.load %x[i0 + 40*r0]
      kernel.yield %a
    }
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @all(%x: !kernel.buffer<f32, 4000>, %y: !kernel.buffer<f32, 1>) {
  %r = kernel.reduce sum r0 in 0 to 4000 {
    %a = kernel.load %x[r0]
    kernel.yield %a
  }
  kernel.store %r, %y[0]
  kernel.yield
}
kernel.func @centre(%x: !kernel.buffer<f32, 4000>, %y: !kernel.buffer<f32, 4000>) {
  %r = kernel.reduce max r0 in 0 to 4000 {
    %a = kernel.load %x[r0]
    kernel.yield %a
  }
  kernel.for i0 in 0 to 4000 {
    %a = kernel.load %x[i0]
    %b = arith.subf %a, %r : f32
    kernel.store %b, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @reductions(%x: !aten.tensor<(s0)x40xf32, device = "cuda:0">, %y: !aten.tensor<100x40xf32, device = "cuda:0">) -> (!aten.tensor<(s0)xf32, device = "cuda:0">, !aten.tensor<40xf32, device = "cuda:0">, !aten.tensor<f32, device = "cuda:0">, !aten.tensor<100x40xf32, device = "cuda:0">) symbols [#sym.symbol<s0, arg = 0, dim = 0, hint = 12>] {
  %a = host.empty : !aten.tensor<(s0)xf32, device = "cuda:0">
  %b = host.empty : !aten.tensor<40xf32, device = "cuda:0">
  %c = host.empty : !aten.tensor<f32, device = "cuda:0">
  %d = host.empty : !aten.tensor<100x40xf32, device = "cuda:0">
  host.launch @rows(%x, %a) [s0]
  host.launch @columns(%y, %b)
  host.launch @all(%y, %c)
  host.launch @centre(%y, %d)
  host.return %a, %b, %c, %d
}
