"""What passes ask of a program before they change it. Everything is derived from the IR each time, nothing is kept.

A question has one name and is answered here once, which `tests/test_import_direction.py` checks.

| question                                                         | module                                           |
|------------------------------------------------------------------|--------------------------------------------------|
| Which ops read and write a buffer, which accesses conflict?      | `effects.py`                                     |
| Which nests may run at any time?                                 | `effects.py`                                     |
| Where do two accesses meet: in one iteration, or in others?      | `dependences.py`; scatters of a tensor           |
|                                                                  | `scatters.py`, `in_place_reads.py`               |
| Which loops and axes are around an op, or in it?                 | `loops.py`                                       |
| By which ops is a value computed, what does a region use?        | `slices.py`                                      |
| How do accesses move along an axis, what work is a nest?         | `nests.py`                                       |
| How many elements does an access touch?                          | `footprint.py`                                   |
| May values share memory, may a read move past a write?           | `memory.py`; a kernel's buffers `aliasing.py`    |
| Which steps of a program may change places?                      | `memory_order.py`; of nests                      |
|                                                                  | `nest_dependences.py`                            |
| From which op to which does a tensor live?                       | `lifetimes.py`; in bytes `live_bytes.py`, over   |
|                                                                  | time `memory_profile.py`, `caching_allocator.py` |
| What are sizes likely to be, how many bytes is that?             | `sizes.py`; a kernel's symbols `launches.py`     |
| What is certain of sizes?                                        | `launch_facts.py`, `tensor_bytes.py`             |
| What does a program cost: bytes, operations, time?               | `program_costs.py`, by `machines/costs.py`       |
| How long does a library take?                                    | `product_times.py`, `convolution_times.py`,      |
|                                                                  | `library_calls.py`                               |
| Is a value better computed again than kept?                      | `recomputing.py`                                 |
| Did a chosen product end on matrix units?                        | `matrix_units.py`                                |
| Which symbols does an op mention, which functions does it call?  | `mentions.py`, `functions.py`, `kept.py`,        |
|                                                                  | `region_calls.py`                                |
"""
