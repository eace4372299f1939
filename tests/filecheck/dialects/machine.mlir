// RUN: inductile-opt %s --split-input-file | filecheck %s
// RUN: inductile-opt %s --split-input-file | inductile-opt --split-input-file | filecheck %s
// RUN: inductile-opt %s --split-input-file --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK: builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp", cuda = "cuda:90">} {
// GENERIC: {machine.targets = #machine.targets<cpu = "cpp", cuda = "cuda:90">}
builtin.module attributes {machine.targets = #machine.targets<cuda = "cuda:90", cpu = "cpp">} {
}

// -----

// An architecture that is not described is made for like the described one that is most like it.

// CHECK: #machine.targets<cuda = "hip:gfx950">
builtin.module attributes {machine.targets = #machine.targets<cuda = "hip:gfx950">} {
}
