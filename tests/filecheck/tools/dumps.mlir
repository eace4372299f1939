// RUN: inductile-opt %s -p "loop-cse,loop-dce" --print-ir-after=loop-cse 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: inductile-opt %s -p "loop-cse,loop-dce" --print-ir-before-all 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: inductile-opt %s -p "loop-cse,loop-dce" --print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: inductile-opt %s -p "loop-cse,loop-dce,loop-cse" --print-ir-after=loop-cse --print-ir-after-change 2>&1 | filecheck %s --check-prefix=ONLY
// RUN: not inductile-opt %s -p "loop-cse" --print-ir-after=loop-dce 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: inductile-opt %s -p "loop-cse,loop-dce" --dump-pass-pipeline 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: inductile-opt %s -p "loop-cse,loop-dce" --print-locations --debug-counter=loop-cse-count=0 | filecheck %s --check-prefix=REFUSED

// The first pass merges the two nests, the second one has nothing to do.

func.func @twice(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) {
  %a = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    %n = arith.negf %v : f32 loc("model.py":7:0)
    loop.yield %n
  } : !aten.tensor<4xf32>
  %b = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    %n = arith.negf %v : f32
    loop.yield %n
  } : !aten.tensor<4xf32>
  %c = loop.generate (i0 in 4) {
    %v = loop.load %a[i0]
    %w = loop.load %b[i0]
    %s = arith.addf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<4xf32>
  func.return %c : !aten.tensor<4xf32>
}

// AFTER:      // -----// IR Dump After loop-cse (loop-cse) //----- //
// AFTER-NEXT: builtin.module {
// AFTER-NOT:  IR Dump

// BEFORE:     // -----// IR Dump Before loop-cse (loop-cse) //----- //
// BEFORE:     arith.negf
// BEFORE:     arith.negf
// BEFORE:     // -----// IR Dump Before loop-dce (loop-dce) //----- //
// BEFORE:     arith.negf
// BEFORE-NOT: IR Dump

// CHANGE:     // -----// IR Dump After loop-cse (loop-cse) //----- //
// CHANGE-NOT: IR Dump

// ONLY:       // -----// IR Dump After loop-cse (loop-cse) //----- //
// ONLY-NOT:   IR Dump

// UNKNOWN: error: no pass 'loop-dce' runs; those that run: loop-cse

// PIPELINE: loop-cse,loop-dce

// REFUSED: arith.negf %{{.*}} : f32 loc(#loc1)
// REFUSED: arith.negf %{{.*}} : f32{{$}}
// REFUSED: #loc1 = loc("model.py":7:0)
