"""Whether a value is better computed again where it is read than kept in memory."""

from __future__ import annotations


def reads_less_again(sites: int, reads: int) -> bool:
    """Whether computing a value at each of its readers moves less memory than writing it once, for each element.

    An element is computed of `reads` elements. At each of the `sites` these are read, `sites * reads`; kept, they are
    read once, the value is written, and each site reads it: `reads + 1 + sites`. `loop-inline` decides by it, and what
    cuts a graph in front of it asks the same.
    """
    return sites * reads < reads + 1 + sites
