"""Programs that run packages without Python: the host program as C++ over libtorch, and how one is built.

| module         | does                                                                          |
|----------------|-------------------------------------------------------------------------------|
| `emit.py`      | `host.func` as C++, when a package is made: the walk of `host/walk.py`        |
| `arguments.py` | sizes, and what operators are given, as C++                                   |
| `model.py`     | weights, inputs and what has to hold of them as C++, from what a package says |
| `gpu.py`       | kernels for a GPU as C++: what the driver needs to launch their machine code  |
| `build.py`     | compiles both with a main program                                             |
| `runtime.h`    | what they call                                                                |
| `gpu.h`        | what programs for a GPU call: the driver, kernels, streams                    |
| `products.h`   | products that others than ATen compute                                        |
| `main.h`       | the command line of a runner                                                  |
"""
