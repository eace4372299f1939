"""Which measurement speaks for a shape."""

from __future__ import annotations

import pytest

from inductile.machines.nests import ATTENTION, PRODUCT, MeasuredNest, NestShape, any_near, nearest, recorded_tile

Sizes = tuple[int, int, int, int]


def _measured(sizes: Sizes, library: float, nest: float, *ops: str) -> MeasuredNest:
    return MeasuredNest(NestShape(ATTENTION, "bf16", sizes, ops), library, nest)


MEASURED = (
    _measured((64, 1024, 1024, 64), 100, 50, "a"),
    _measured((64, 4096, 4096, 64), 1600, 800, "a"),
    _measured((64, 1024, 1024, 128), 200, 100, "a"),
    _measured((64, 4096, 4096, 128), 3000, 3200, "a"),
)


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ((64, 1024, 1024, 64), 0),
        ((500, 1024, 1024, 64), 0),  # the card is full of either
        ((16, 1024, 1024, 64), 0),  # a quarter of the rows
        ((8, 1024, 1024, 64), None),
        ((64, 1500, 1500, 64), 0),  # both beside it say the same
        ((64, 3000, 3000, 64), 1),
        ((64, 512, 512, 64), 0),
        ((64, 128, 128, 64), None),
        ((64, 8192, 8192, 64), 1),  # as long as that both took the same time more
        ((64, 32768, 32768, 64), None),
        ((64, 1500, 1500, 96), 2),  # the worse of both widths is ahead still
        ((64, 3500, 3500, 96), None),
        ((64, 2048, 512, 64), None),
        ((64, 2048, 2048, 128), 2),  # they don't, and half of the way makes 0.73 of the time
        ((64, 1024, 1024, 32), 0),
        ((64, 1024, 1024, 224), 2),
        ((64, 3000, 3000, 224), None),
    ],
)
def test_attention(sizes: Sizes, found: int | None) -> None:
    expected = None if found is None else MEASURED[found]
    assert nearest(NestShape(ATTENTION, "bf16", sizes, ("a",)), MEASURED) is expected
    assert nearest(NestShape(ATTENTION, "bf16", sizes, ("b",)), MEASURED) is None
    assert nearest(NestShape(ATTENTION, "f16", sizes, ("a",)), MEASURED) is None
    assert any_near("bf16", sizes, MEASURED) is (found is not None)


@pytest.mark.parametrize(
    ("sizes", "is_ahead"),
    [
        ((64, 4096, 4096, 64), True),  # its pace goes on
        ((64, 8192, 8192, 64), None),  # with more doubt the farther away
        ((64, 16384, 16384, 64), None),
        ((64, 1024, 1024, 64), True),
        ((16, 4096, 4096, 64), True),  # fewer rows of longer heads fill the card, too
        ((8, 4096, 4096, 64), None),  # of as few the loops of one length were not ahead
        ((12, 2048, 2048, 64), None),  # between both the worse one counts
        ((8, 2048, 2048, 64), False),
        ((4, 2048, 2048, 64), None),
    ],
)
def test_attention_of_one_length(sizes: Sizes, is_ahead: bool | None) -> None:
    measured = (_measured((32, 2048, 2048, 64), 100, 82, "a"), _measured((8, 2048, 2048, 64), 25, 25, "a"))
    found = nearest(NestShape(ATTENTION, "bf16", sizes, ("a",)), measured)
    assert (found and found.is_ahead) is is_ahead


def test_products_do_not_lie_between() -> None:
    measured = [MeasuredNest(NestShape(PRODUCT, "bf16", (1, n, n, n)), 2, 1) for n in (512, 4096)]
    assert nearest(NestShape(PRODUCT, "bf16", (1, 1500, 1500, 1500)), measured) is None
    assert nearest(NestShape(PRODUCT, "bf16", (1, 512, 500, 512)), measured) is measured[0]


def test_the_same_product_has_the_tile_that_was_recorded() -> None:
    """What stands behind it counts, and a product that is only like it has none."""
    alone, behind = (16, 64, 128, 4, 4, 2), (64, 32, 128, 4, 5)
    sizes = 1, 64, 1000, 2048
    measured = (
        MeasuredNest(NestShape(PRODUCT, "bf16", sizes), 6.3, 6.5, alone),
        MeasuredNest(NestShape(PRODUCT, "bf16", sizes, ("add", "relu")), 8.4, 7.0, behind),
    )
    assert recorded_tile(NestShape(PRODUCT, "bf16", sizes), measured) == alone
    assert recorded_tile(NestShape(PRODUCT, "bf16", sizes, ("behind",)), measured) == behind
    assert recorded_tile(NestShape(PRODUCT, "bf16", (1, 72, 1000, 2048)), measured) == ()
    assert recorded_tile(NestShape(PRODUCT, "f16", sizes), measured) == ()
