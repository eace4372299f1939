"""Compile random programs and compare with eager: `python tests/property/run.py --count 2000 --seed 0`.

Prints each program that differs, and the totals. Programs of one seed are the same everywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import eager_compare
import programs
import torch


def main() -> None:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=0, help="first seed")
    p.add_argument("--steps", type=int, default=8, help="steps of a program, at most")
    p.add_argument("--backend", default="inductile")
    p.add_argument("--dynamic", action="store_true", default=None)
    p.add_argument("--wide", action="store_true", help="more kinds of steps: scatters, scans, writes through views")
    args = p.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    wrong: list[int] = []
    start = time.perf_counter()
    for seed in range(args.seed, args.seed + args.count):
        program = programs.seeded_program(seed, args.steps, args.wide)
        options = programs.compile_options(program) if args.backend == "inductile" else {}
        faults = eager_compare.compare(
            program.run, program.inputs, args.backend,
            dynamic=args.dynamic, options=options, reference=programs.reference(program),
        )  # fmt: skip
        if faults:
            wrong.append(seed)
            print(f"seed {seed}: {'; '.join(faults)}\n{program}\n", flush=True)
    seconds = time.perf_counter() - start
    print(f"{args.count - len(wrong)} of {args.count} programs right in {seconds:.0f} s; wrong seeds: {wrong}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
