"""Programs that run packages without Python: the host program as C++ over libtorch, and how one is built.

| module      | does                                                                        |
|-------------|-----------------------------------------------------------------------------|
| `emit.py`   | `host.func` as C++, when a package is made                                   |
| `model.py`  | weights, inputs and what has to hold of them as C++, from what a package says |
| `build.py`  | compiles both with a main program                                            |
| `runtime.h` | what they call                                                               |
| `main.h`    | the command line of a runner                                                 |
"""
