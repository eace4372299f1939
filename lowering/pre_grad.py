"""The passes on Dynamo's graph, before autograd: their names and what they do. The code is in `fx_pre_grad.py`.

Apart, because the command lines list them and must not load torch.
"""

from __future__ import annotations

import difflib

from ..errors import UserError
from ..records import dataclass


@dataclass(frozen=True)
class PreGradPass:
    """A pass on the graph of torch-level calls that Dynamo hands over; `module` holds its code.

    optional: whether graphs need not have been through it, so that it may fail
    """

    name: str
    purpose: str
    module: str = "lowering.fx_pre_grad"
    level: str = "torch FX"
    optional: bool = True


PRE_GRAD: dict[str, PreGradPass] = {
    each.name: each
    for each in (
        PreGradPass(
            "settle-numbers",
            "Under `dynamic=True`, numbers that modules own (an epsilon, a scale) are constants as without it: a guard "
            "asks for the same value. One that was another before stays dynamic.",
            "lowering.fx_numbers",
        ),
        PreGradPass("remove-identities", "Calls that return their argument itself go away: dropout in evaluation."),
        PreGradPass(
            "write-out-flex-attention",
            "`flex_attention` is the products, the functions of scores and the softmax that it stands for, which fuse "
            "as others do; where a gradient is asked, if training of such sizes was measured. Tables of a BlockMask "
            "and `kernel_options` are not read.",
            "lowering.fx_flex_attention",
        ),
        PreGradPass(
            "recognise-attention",
            "On a GPU, attention of 16 bits that is written out is `scaled_dot_product_attention`, with its mask, bias "
            "and dropout; where a mask or bias stays of which no gradient is asked, `graph-choose-products`, in "
            "training `graph-choose-scores`, chooses between that and what was written. Rounds differently: scores "
            "stay in float32. A row that is hidden entirely gets what it gets in eager; NaN or infinity in a key or "
            "value that a row does not see no longer reaches it. A "
            "bias of float32, as MPT has it, stays as it is: no fused kernel adds one to scores of 16 bits, which "
            "would lose its digits.",
            "lowering.fx_attention",
        ),
        PreGradPass(
            "prove-attention-masks",
            "Masks of attention that no input decides are evaluated: one that hides nothing goes away, the causal one "
            "becomes `is_causal`, also where sizes are symbols, and of padding by length the keys are not read. Others "
            "get rows that lie side by side on a GPU, as fused kernels want them; where no gradient is asked of them "
            "`graph-choose-products`, in training `graph-choose-scores`, may take products and a softmax instead, "
            "which compute the mask.",
            "lowering.fx_attention_masks",
        ),
        PreGradPass(
            "group-attention-heads",
            "On a GPU, attention whose keys and values have one head or one batch for all of the queries' reads them "
            "where they are, in a fused kernel. Rounds differently: torch computes its scores op by op.",
            "lowering.fx_attention_heads",
        ),
        PreGradPass(
            "fold-batch-norm",
            "Batch norms in evaluation become part of the weights of the convolution before them. Without gradients "
            "only. Rounds differently; a write to a parameter that torch's version counter does not see, as through "
            "`.data`, goes unnoticed.",
        ),
    )
}


def pre_grad_names(text: str) -> list[str]:
    """Names of a list such as "remove-identities,fold-batch-norm". UserError for an unknown one."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in PRE_GRAD:
            close = difflib.get_close_matches(name, PRE_GRAD, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(PRE_GRAD)}"
            raise UserError(f"unknown pass {name!r} on Dynamo's graph", hint)
    return names
