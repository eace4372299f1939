// RUN: inductile-opt %s --split-input-file --verify-diagnostics -p loop-inline

func.func @wrong_shape(%x: !aten.tensor<4xf32>) -> !aten.tensor<5xf32> {
  // expected-error @below {{do not span a result of type !aten.tensor<5xf32>}}
  %a = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<5xf32>
  func.return %a : !aten.tensor<5xf32>
}

// -----

func.func @undefined(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %a = loop.generate (i0 in 4) {
    %v = loop.load %y[i0] // expected-error {{value %y is used before it is defined}}
    loop.yield %v
  } : !aten.tensor<4xf32>
  func.return %a : !aten.tensor<4xf32>
}

// -----

func.func @remark(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  // expected-remark @+1 {{[loop-inline] passed: loop.generate: inlined}}
  %a = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<4xf32>
  %b = loop.generate (i0 in 4) {
    %v = loop.load %a[i0]
    %n = arith.negf %v : f32
    loop.yield %n
  } : !aten.tensor<4xf32>
  func.return %b : !aten.tensor<4xf32>
}
