"""Exported programs as one file, which runs without Dynamo, without tracing and without a compiler.

| module       | does                                                                              |
|--------------|-----------------------------------------------------------------------------------|
| `make.py`    | compiles a `torch.export.ExportedProgram` and writes the file                     |
| `load.py`    | reads the file; a program that is called with real tensors                        |
| `moving.py`  | the exported program on another device                                             |
| `placing.py` | the device that a program runs on                                                 |
| `attention.py` | which attention runs on a GPU that is not here                                   |
| `runner/`    | programs that run packages without Python                                         |
| `archive.py` | the file: a zip whose members have to have the sizes and digests that it says     |
| `inputs.py`  | what a call may bring, and what it means for sizes that are symbols                |
| `sizes.py`   | expressions of such sizes as JSON                                                 |
| `plain.py`   | what host programs name as JSON                                                   |
| `weights.py` | tensors as bytes                                                                  |
| `needs.py`   | what a file needs of the machine and of what is installed                         |

A file holds machine code and the text of a host program. Who loads it trusts whoever made it.
"""
