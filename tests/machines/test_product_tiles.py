"""The paces of tiles tell times that grow with what there is to do."""

from __future__ import annotations

import pytest

from inductile.machines.product_tiles import TILES, TilePace, Waves, best_behind


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


def test_smaller_tiles_behind_whole_waves() -> None:
    """22 of 25 rows of 6 tiles are a wave of 132; 128 rows more are none."""
    waves = Waves.of(3136, 768, (128, 128), 132)
    assert waves is not None and waves == Waves(2816, 320, 1)
    assert Waves.of(2816, 768, (128, 128), 132) is None and Waves.of(1024, 768, (128, 128), 132) is None
    pace = next(each for each in TILES if (each.rows, each.columns, each.resident) == (128, 128, 0))
    found = best_behind(pace, 3136, 768, 3072, 132, False)
    assert found is not None and found[0] < pace.time(150, 132, 3072, False)
    assert -(-waves.count // found[1].rows) * -(-768 // found[1].columns) <= 132
