"""What passes ask of a program before they change it. Everything is derived from the IR each time, nothing is kept.

| question                                                         | module                                        |
|------------------------------------------------------------------|-----------------------------------------------|
| Which ops read and write a buffer, which accesses conflict?      | `effects.py`                                  |
| Where do two accesses meet: in one iteration, or in others?      | `dependences.py`                              |
| Which loops and axes are around an op, or in it?                 | `loops.py`                                    |
| How do accesses move along an axis, what work is a nest?         | `nests.py`                                    |
| How many elements does an access touch?                          | `footprint.py`                                |
| May values share memory, may a read move past a write?           | `memory.py`; a kernel's buffers `aliasing.py` |
| From which op to which does a tensor live?                       | `lifetimes.py`; over time `memory_profile.py` |
| What are sizes likely to be, how many bytes is that?             | `sizes.py`; a kernel's symbols `launches.py`  |
| What is certain of sizes?                                        | `launch_facts.py`, `tensor_bytes.py`          |
| What does a program cost: bytes, operations, time?               | `program_costs.py`, by `machines/costs.py`    |
| Which symbols does an op mention, which functions does it call?  | `mentions.py`, `functions.py`, `kept.py`      |
"""
