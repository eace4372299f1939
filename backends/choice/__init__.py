"""Measuring candidates for products and attention while a graph compiles, and keeping what was measured.

`passes/common/choices.py` says what is asked; `timer.py` answers, `store.py` keeps answers on disk.
"""

from .timer import MeasuringTimer, timer_of

__all__ = ["MeasuringTimer", "timer_of"]
