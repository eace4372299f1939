"""The paces of tiles tell times that grow with what there is to do."""

from __future__ import annotations

import pytest

from inductile.machines.product_tiles import TILES, TilePace


@pytest.mark.parametrize("pace", TILES, ids=str)
def test_times_grow(pace: TilePace) -> None:
    def time(programs: int = 132, depth: int = 1024, behind: bool = False) -> float:
        return pace.time(programs, 132, depth, behind)

    assert time(16) == time(132)  # a card that is not full takes as long
    assert time(132) < time(133) < time(264) < time(265)
    assert time(265) - time(264) > 0.6 * (time(264) - time(132))  # one more program than turns takes most of a turn
    assert (
        time(depth=pace.depth // 2) < time(depth=pace.depth) < time(depth=pace.depth + 1) == time(depth=2 * pace.depth)
    )
    assert time(behind=True) > time()


def test_more_programs_prefer_larger_tiles() -> None:
    """Each of these reads less memory for a product; small ones win where there are few rows."""

    def best(rows: int, columns: int, depth: int) -> TilePace:
        programs = {pace: -(-rows // pace.rows) * -(-columns // pace.columns) for pace in TILES}
        return min(TILES, key=lambda pace: pace.time(programs[pace], 132, depth, False))

    assert best(8192, 8192, 4096).rows * best(8192, 8192, 4096).columns >= 128 * 128
    assert best(64, 1024, 2048).columns <= 64
