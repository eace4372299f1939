// RUN: inductile-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{unknown target 'cuda:9O'; did you mean 'cuda:90'?}}
builtin.module attributes {machine.targets = #machine.targets<cuda = "cuda:9O">} {
}

// -----

// expected-error @below {{the target 'cpp' is one of the device 'cpu', not 'cuda'}}
builtin.module attributes {machine.targets = #machine.targets<cuda = "cpp">} {
}

// -----

// expected-error @below {{a type of device is named twice}}
builtin.module attributes {machine.targets = #machine.targets<cuda = "cuda:90", cuda = "cuda:80">} {
}

// -----

// expected-error @below {{write machine.targets = #machine.targets<cuda = "cuda:90">}}
builtin.module attributes {machine.targets = "cuda:90"} {
}
