"""Losses, and gradients of views and gates."""

from __future__ import annotations

import torch

from .structured_cases import arange, case, ints, mask, mixed, x234

_logits, _image_logits = mixed(4, 5), mixed(2, 3, 2, 2)
_targets, _image_targets = ints(1, 0, 4, -100), torch.tensor([[[0, 1], [2, -100]], [[1, 1], [0, 2]]])
_probabilities = torch.tensor([0.0, 0.25, 0.5, 1.0])
LOSSES = [
    *(
        case(n, mixed(2, 3), mixed(2, 3, seed=1), r, *o)
        for n, o in (("mse_loss", ()), ("smooth_l1_loss", (0.7,)), ("huber_loss", (1.5,)), ("soft_margin_loss", ()))
        for r in (0, 1, 2)
    ),
    *(
        case(
            f"{n}_backward",
            mixed(2, 3, seed=2) if r == 0 else torch.tensor(1.5),
            mixed(2, 3),
            mixed(2, 3, seed=1),
            r,
            *o,
        )
        for n, o in (("mse_loss", ()), ("smooth_l1_loss", (0.7,)), ("huber_loss", (1.5,)), ("soft_margin_loss", ()))
        for r in (0, 1, 2)
    ),
    *(
        case("binary_cross_entropy", _probabilities, torch.tensor([0.0, 1.0, 0.5, 1.0]), w, r)
        for w in (None, mixed(4))
        for r in (0, 1, 2)
    ),
    case(
        "binary_cross_entropy_backward", torch.tensor(2.0), _probabilities, torch.tensor([0.0, 1.0, 0.5, 0.0]), mixed(4)
    ),
    *(case("nll_loss_forward", _logits, _targets, w, r, -100) for w in (None, mixed(5)) for r in (0, 1, 2)),
    case("nll_loss_forward", mixed(5), torch.tensor(3), None, 1, -100),
    case("nll_loss_forward", _logits.bfloat16(), ints(1, 0, 4, 2), None, 1, 4),
    *(
        case("nll_loss2d_forward", _image_logits, _image_targets, w, r, -100)
        for w in (None, mixed(3))
        for r in (0, 1, 2)
    ),
    *(
        case(
            "nll_loss_backward",
            mixed(4) if r == 0 else torch.tensor(1.5),
            _logits,
            _targets,
            w,
            r,
            -100,
            torch.tensor(3.0),
        )
        for w in (None, mixed(5))
        for r in (0, 1, 2)
    ),
    case("nll_loss_backward", torch.tensor(1.5), mixed(5), torch.tensor(3), None, 1, -100, torch.tensor(1.0)),
    *(
        case(
            "nll_loss2d_backward",
            mixed(2, 2, 2) if r == 0 else torch.tensor(1.5),
            _image_logits,
            _image_targets,
            None,
            r,
            -100,
            torch.tensor(3.0),
        )
        for r in (0, 1, 2)
    ),
]

VIEW_GRADIENTS = [
    case("slice_backward", mixed(2, 2, 4), [2, 3, 4], 1, 1, 9223372036854775807, 1),
    case("slice_backward", mixed(3), [9], 0, -8, 100, 3),
    case("slice_backward", mixed(2, 3), [2, 3], 0, 0, 2, 1),
    case("select_backward", mixed(2, 4), [2, 3, 4], 1, -1),
    case("diagonal_backward", mixed(3), [3, 4], 1, 0, 1),
    case("diagonal_backward", mixed(2, 2), [2, 3, 4], -1, 1, 2),
    case("glu", mixed(2, 6, 3), 1),
    case("glu_backward", mixed(2, 3), mixed(2, 6, seed=1), -1),
    case("masked_scatter", x234, torch.tensor([True, False, False, True]), mixed(4, 4)),
    case("masked_scatter", arange(2, 3), mask, mixed(5)),
    case("masked_scatter", arange(3), mask, mixed(6)),
    case("masked_scatter", arange(3).half(), mask, mixed(6).half()),
]
