"""The cache of whole graphs: forward, backward and inference programs, found by Dynamo's graph before it is traced.

| module        | does                                                                                         |
|---------------|----------------------------------------------------------------------------------------------|
| `front.py`    | looks a graph up before anything of the compiler is imported, else compiles and stores       |
| `key.py`      | what of a graph, its inputs and the state of torch decides about the compiled code            |
| `overrides.py`| who has changed what operators of torch mean                                                  |
| `identity.py` | what of this machine and of what is installed does                                            |
| `freeze.py`   | a compiled graph as data                                                                      |
| `frozen.py`   | host programs as data, and back                                                               |
| `thaw.py`     | and back, without the compiler                                                                |
| `pickling.py` | entries as bytes                                                                              |
| `store.py`    | files, each of which this user alone may have written                                         |
| `private.py`  | what all that needs of torch                                                                  |

The wrappers around the programs (mutations, views, the autograd function) are torch's: an entry holds what AOTAutograd
keeps in its own cache, with our programs in the places of Inductor's. Torch's files are not used. It would unpickle
what lies in its folder; ours is checked for its owner first.

What is not certain to be in the key is not looked up: `NotCacheableError` says why.
"""
