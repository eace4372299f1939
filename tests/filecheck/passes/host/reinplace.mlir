// RUN: inductile-opt %s --allow-effects --split-input-file --verify-each -p host-reinplace | filecheck %s

kernel.func @sum(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 8>) {
  kernel.yield
}

// Two calls write one argument after the other, and the program writes it back: no copy is left.

host.func @chain(%cache: !aten.tensor<8x8xf32>, %v: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) symbols [] {
  %n, %c = aten.call "higher_order::auto_functionalized_v2"(operator("m::write"), v = %v, at = 3, _cache_base_index = 0, _all_bases = [%cache]) {mutates = ["cache"]} : none, !aten.tensor<8x8xf32>
  %m, %d = aten.call "higher_order::auto_functionalized_v2"(operator("m::write"), v = %v, at = 5, _cache_base_index = 0, _cache_slice_dim = 0, _cache_slice_start = 2, _cache_slice_end = 8, _all_bases = [%c]) {mutates = ["cache"]} : none, !aten.tensor<8x8xf32>
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @sum(%d, %y)
  host.copy %d to %cache
  host.return %y
}

// CHECK-LABEL: host.func @chain
// CHECK-NEXT:    aten.call "m::write"(v = %v, at = 3, cache = %cache) writes [1]
// CHECK-NEXT:    [[VIEW:%.*]] = host.view %cache offset 16 : !aten.tensor<6x8xf32>
// CHECK-NEXT:    aten.call "m::write"(v = %v, at = 5, cache = [[VIEW]]) writes [1]
// CHECK-NEXT:    host.empty
// CHECK-NEXT:    host.launch @sum(%cache,
// CHECK-NEXT:    host.return

// -----

kernel.func @sum(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 8>) {
  kernel.yield
}

// The old elements are read behind the call, so it writes a copy; the next one may write that copy.

host.func @read_later(%cache: !aten.tensor<8x8xf32>, %v: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) symbols [] {
  %n, %c = aten.call "higher_order::auto_functionalized"(operator("m::write"), v = %v, at = 3, cache = %cache) {mutates = ["cache"]} : none, !aten.tensor<8x8xf32>
  %m, %d = aten.call "higher_order::auto_functionalized"(operator("m::write"), v = %v, at = 4, cache = %c) {mutates = ["cache"]} : none, !aten.tensor<8x8xf32>
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @sum(%cache, %y)
  host.copy %d to %cache
  host.return %y
}

// CHECK-LABEL: host.func @read_later
// CHECK-NEXT:    [[COPY:%.*]] = host.empty : !aten.tensor<8x8xf32>
// CHECK-NEXT:    host.copy %cache to [[COPY]]
// CHECK-NEXT:    aten.call "m::write"(v = %v, at = 3, cache = [[COPY]]) writes [1]
// CHECK-NEXT:    aten.call "m::write"(v = %v, at = 4, cache = [[COPY]]) writes [1]
// CHECK:         host.copy [[COPY]] to %cache

// -----

// What the caller keeps is not written; neither is one tensor for two arguments, nor one that is read beside it.
// Memory of the program's own is, each time.

host.func @several(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) symbols [] {
  %a = aten.relu(%x) : !aten.tensor<8xf32>
  %n, %b, %c = aten.call "higher_order::auto_functionalized_v2"(operator("m::two"), _p_base_index = 0, _q_base_index = 1, _r_length = none, _all_bases = [%a, %x]) {mutates = ["p", "q", "r"]} : none, !aten.tensor<8xf32>, !aten.tensor<8xf32>
  %m, %d, %e = aten.call "higher_order::auto_functionalized"(operator("m::two"), p = %b, q = %b) {mutates = ["p", "q"]} : none, !aten.tensor<8xf32>, !aten.tensor<8xf32>
  host.return %c, %d, %e
}

// CHECK-LABEL: host.func @several
// CHECK-NEXT:    %a = aten.relu(%x)
// CHECK-NEXT:    [[X:%.*]] = host.empty
// CHECK-NEXT:    host.copy %x to [[X]]
// CHECK-NEXT:    aten.call "m::two"(p = %a, q = [[X]], r = none) writes [0, 1]
// CHECK-NEXT:    [[P:%.*]] = host.empty
// CHECK-NEXT:    host.copy %a to [[P]]
// CHECK-NEXT:    [[Q:%.*]] = host.empty
// CHECK-NEXT:    host.copy %a to [[Q]]
// CHECK-NEXT:    aten.call "m::two"(p = [[P]], q = [[Q]]) writes [0, 1]
// CHECK-NEXT:    host.return [[X]], [[P]], [[Q]]

// -----

// A list of views, strides of the program's choice, a result; and Triton kernels of the program.

host.func @forms(%x: !aten.tensor<(s0)x8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<(s0)x8xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  %a = aten.relu(%x) : !aten.tensor<(s0)x8xf32>
  %r, %b = aten.call "higher_order::auto_functionalized_v2"(operator("m::list"), _xs_length = 2, _xs_0_base_index = 0, _xs_0_slice_dim = 0, _xs_0_slice_start = 1, _xs_0_slice_end = s0, _xs_1_base_index = 0, _xs_1_size = [s0], _xs_1_stride = [8], _xs_1_storage_offset = 3, _all_bases = [%a]) {mutates = ["xs"]} : !aten.tensor<8xf32>, !aten.tensor<(s0)x8xf32>
  %e = host.empty : !aten.tensor<(s0)x8xf32>
  %c = aten.call "higher_order::triton_kernel_wrapper_functional"(kernel_idx = 0, constant_args_idx = 1, grid = [tuple(s0, 1, 1)], tma_descriptor_metadata = {}, kwargs = {x = %b, y = %e}, tensors_to_clone = ["y"]) : !aten.tensor<(s0)x8xf32>
  host.return %r, %c
}

// CHECK-LABEL: host.func @forms
// CHECK-NEXT:    %a = aten.relu(%x)
// CHECK-NEXT:    [[ROWS:%.*]] = host.view %a offset 8 : !aten.tensor<(s0 - 1)x8xf32>
// CHECK-NEXT:    [[COLUMN:%.*]] = host.view %a offset 3 : !aten.tensor<(s0)xf32, strides = [8]>
// CHECK-NEXT:    %r = aten.call "m::list"(xs = {{\[}}[[ROWS]], [[COLUMN]]]) writes [0, 1] : !aten.tensor<8xf32>
// CHECK-NEXT:    %e = host.empty
// CHECK-NEXT:    aten.call "higher_order::triton_kernel_wrapper_mutation"(kernel_idx = 0, constant_args_idx = 1, grid = {{.*}}, tma_descriptor_metadata = {}, kwargs = {x = %a, y = %e}) writes [1]
// CHECK-NEXT:    host.return %r, %e

// -----

// Views are described by places in the storage, where the tensor lay at 10. A wrapper around an operator of which
// nothing is known stays, and what it returns may be one tensor twice.

host.func @stay(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>) symbols [] {
  %n, %b = aten.call "higher_order::auto_functionalized_v2"(operator("m::write"), _x_base_index = 0, _x_size = [4], _x_stride = [2], _x_storage_offset = 11, _all_bases = [%x]) {mutates = ["x"], starts = #sym.map<10>} : none, !aten.tensor<8xf32>
  %m, %c = aten.call "higher_order::auto_functionalized_v2"(operator("m::write_"), _x_base_index = 0, _all_bases = [%y]) : !aten.tensor<8xf32>, !aten.tensor<8xf32>
  %k, %d = aten.call "higher_order::auto_functionalized_v2"(operator("m::write"), _x_base_index = 0, _all_bases = [%c]) {mutates = ["x"]} : none, !aten.tensor<8xf32>
  host.copy %d to %y
  host.return %b, %m
}

// CHECK-LABEL: host.func @stay
// CHECK-NEXT:    [[X:%.*]] = host.empty
// CHECK-NEXT:    host.copy %x to [[X]]
// CHECK-NEXT:    [[EVERY:%.*]] = host.view [[X]] offset 1 : !aten.tensor<4xf32, strides = [2]>
// CHECK-NEXT:    aten.call "m::write"(x = [[EVERY]]) writes [0]
// CHECK-NEXT:    %m, %c = aten.call "higher_order::auto_functionalized_v2"
// CHECK-NEXT:    [[COPY:%.*]] = host.empty
// CHECK-NEXT:    host.copy %c to [[COPY]]
// CHECK-NEXT:    aten.call "m::write"(x = [[COPY]]) writes [0]
// CHECK-NEXT:    host.copy [[COPY]] to %y
