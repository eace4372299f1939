"""More models of transformers, each with a part that the others lack: hashing, latents, routers, codes, detection."""

from __future__ import annotations

from typing import Any

import torch

from .base import (
    BATCHES,
    Inputs,
    Row,
    integers,
    noise,
    numbers,
    pixels,
    sequences_to_sequences,
    together,
    tokens,
    waves,
)
from .hugging_face import row

_TEXT = tokens()
_PLAIN = tokens(mask=False)
_PAIR = sequences_to_sequences()
_STAGES: dict[str, Any] = {"hidden_sizes": [8, 16], "depths": [1, 1]}
_SPEECH: dict[str, Any] = {
    "conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
_DETECTION: dict[str, Any] = {
    "use_timm_backbone": False, "use_pretrained_backbone": False, "num_queries": 5, "num_labels": 4,
    "backbone_config": {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
                        "layer_type": "basic", "out_features": ["stage2"]},
}  # fmt: skip


def _boxes(size: int) -> torch.Tensor:
    found = integers(900, 2, (16, 24, 29)[size], 4, seed=size).sort(-1).values
    return found[..., [0, 2, 1, 3]].sort(-1).values


def _pairs_with_images(size: int) -> Inputs:
    return tokens(mask=False)(size) | {
        "visual_feats": noise(2, 6, 12, seed=size),
        "visual_pos": noise(2, 6, 4, seed=size + 1).sigmoid(),
    }


ROWS: tuple[Row, ...] = (
    row("deberta", "encoder", "DebertaModel", _TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    row("ibert", "encoder", "IBertModel", _TEXT, quant_mode=True),
    row("mobilebert", "encoder", "MobileBertModel", _TEXT, true_hidden_size=16, intra_bottleneck_size=16,
        num_feedforward_networks=2),
    row("rembert", "encoder", "RemBertModel", _TEXT, input_embedding_size=16, output_embedding_size=16),
    row("xlm", "encoder", "XLMModel", _TEXT, tiny=False, n_words=99, vocab_size=99, emb_dim=32, n_layers=2, n_heads=4,
        max_position_embeddings=64),
    row("flaubert", "encoder", "FlaubertModel", _TEXT, tiny=False, n_words=99, emb_dim=32, n_layers=2, n_heads=4),
    row("xmod", "encoder", "XmodModel", _TEXT, languages=["en_XX", "de_DE"], default_language="en_XX"),
    row("reformer", "encoder", "ReformerModel", tokens(mask=False, factor=2), tiny=False, vocab_size=99,
        hidden_size=32, attention_head_size=8, num_attention_heads=4, feed_forward_size=64, attn_layers=[
            "local", "local"], local_attn_chunk_length=8, axial_pos_embds=False, max_position_embeddings=64,
        is_decoder=True, hash_seed=0),
    row("big_bird_sparse", "encoder", "BigBirdModel", tokens(mask=False, factor=4), attention_type="block_sparse",
        block_size=4, num_random_blocks=1, max_position_embeddings=256,
        skip=dict.fromkeys(("training", "lengths", "autocast"), "attends at random")),
    row("mra", "encoder", "MraModel", tokens(mask=False, factor=4), max_position_embeddings=128),
    row("yoso", "encoder", "YosoModel", _TEXT, use_expectation=True),
    row("luke", "encoder", "LukeModel", _TEXT, entity_vocab_size=20, entity_emb_size=16),
    row("tapas", "encoder", "TapasModel", together(_TEXT, token_type_ids=lambda size: integers(
        2, 2, (16, 24, 29)[size], 7, seed=size)), type_vocab_sizes=[3, 256, 256, 2, 256, 256, 10]),
    row("layoutlm", "encoder", "LayoutLMModel", together(_TEXT, bbox=_boxes)),
    row("lilt", "encoder", "LiltModel", together(_TEXT, bbox=_boxes), hidden_size=48, channel_shrink_ratio=4),
    row("nomic_bert", "encoder", "NomicBertModel", _TEXT),
    row("eurobert", "encoder", "EuroBertModel", _TEXT),
    row("ctrl", "decoder", "CTRLLMHeadModel", _TEXT, tiny=False, vocab_size=99, n_embd=32, n_layer=2, n_head=4,
        dff=64, n_positions=64),
    row("codegen", "decoder", "CodeGenForCausalLM", _TEXT, tiny=False, vocab_size=99, n_embd=32, n_layer=2, n_head=4,
        n_positions=64, n_ctx=64, rotary_dim=4),
    row("persimmon", "decoder", "PersimmonForCausalLM", _TEXT, num_key_value_heads=4),
    row("gemma", "decoder", "GemmaForCausalLM", _TEXT),
    row("olmo", "decoder", "OlmoForCausalLM", _TEXT, clip_qkv=0.5),
    row("nemotron", "decoder", "NemotronForCausalLM", _TEXT),
    row("glm4", "decoder", "Glm4ForCausalLM", _TEXT),
    row("helium", "decoder", "HeliumForCausalLM", _TEXT),
    row("diffllama", "decoder", "DiffLlamaForCausalLM", _TEXT),
    row("bitnet", "decoder", "BitNetForCausalLM", _TEXT),
    row("xglm", "decoder", "XGLMForCausalLM", _TEXT, attention_heads=4, ffn_dim=64),
    row("biogpt", "decoder", "BioGptForCausalLM", _TEXT),
    row("gpt_bigcode", "decoder", "GPTBigCodeForCausalLM", _TEXT, tiny=False, vocab_size=99, n_embd=32, n_layer=2,
        n_head=4, n_positions=64),
    row("imagegpt", "decoder", "ImageGPTModel", tokens(mask=False), tiny=False, vocab_size=99, n_embd=32, n_layer=2,
        n_head=4, n_positions=64),
    row("nanochat", "decoder", "NanoChatForCausalLM", _TEXT),
    row("apertus", "decoder", "ApertusForCausalLM", _TEXT),
    row("cohere2", "decoder", "Cohere2ForCausalLM", _TEXT, sliding_window=8, layer_types=[
        "sliding_attention", "full_attention"]),
    row("gemma3n", "decoder", "Gemma3nForCausalLM", _TEXT, sliding_window=8, layer_types=[
        "sliding_attention", "full_attention"], num_kv_shared_layers=0, vocab_size_per_layer_input=99,
        hidden_size_per_layer_input=8, laurel_rank=4, activation_sparsity_pattern=[0.5, 0.0]),
    row("doge", "decoder", "DogeForCausalLM", _TEXT),
    row("openai_gpt", "decoder", "OpenAIGPTLMHeadModel", _TEXT, tiny=False, vocab_size=99, n_embd=32, n_layer=2,
        n_head=4, n_positions=64),
    row("deepseek_v2", "mixture of experts", "DeepseekV2ForCausalLM", _TEXT, n_routed_experts=4, n_group=2,
        topk_group=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
        num_key_value_heads=4, first_k_dense_replace=1),
    row("phimoe", "mixture of experts", "PhimoeForCausalLM", _TEXT),
    row("jetmoe", "mixture of experts", "JetMoeForCausalLM", _TEXT, kv_channels=8),
    row("dbrx", "mixture of experts", "DbrxForCausalLM", _TEXT, tiny=False, vocab_size=99, d_model=32, n_heads=4,
        n_layers=2, max_seq_len=64, ffn_config={"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2,
        "hidden_size": 32}, attn_config={"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0}),
    row("glm4_moe", "mixture of experts", "Glm4MoeForCausalLM", _TEXT, n_routed_experts=4, first_k_dense_replace=1),
    row("minimax", "mixture of experts", "MiniMaxForCausalLM", _TEXT, block_size=8, layer_types=[
        "linear_attention", "full_attention"]),
    row("nllb_moe", "mixture of experts", "NllbMoeForConditionalGeneration", _PAIR, encoder_sparse_step=2,
        decoder_sparse_step=2),
    row("zamba2", "state space", "Zamba2ForCausalLM", _TEXT, mamba_d_state=8, mamba_headdim=8, mamba_ngroups=1,
        n_mamba_heads=8, chunk_size=8, num_mem_blocks=1, hybrid_layer_ids=[1], use_mem_eff_path=False,
        layers_block_type=["mamba", "hybrid"]),
    row("falcon_h1", "state space", "FalconH1ForCausalLM", _TEXT, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8,
        mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=8),
    row("nemotron_h", "state space", "NemotronHForCausalLM", _TEXT, mamba_num_heads=8, mamba_head_dim=8,
        ssm_state_size=8, n_groups=1, chunk_size=8, hybrid_override_pattern="M*"),
    row("kimi_linear", "state space", "KimiLinearForCausalLM", _TEXT),
    row("marian", "encoder-decoder", "MarianMTModel", _PAIR),
    row("mbart", "encoder-decoder", "MBartForConditionalGeneration", _PAIR),
    row("fsmt", "encoder-decoder", "FSMTForConditionalGeneration", _PAIR, langs=["en", "de"], src_vocab_size=99,
        tgt_vocab_size=99),
    row("longt5", "encoder-decoder", "LongT5ForConditionalGeneration", _PAIR, local_radius=4,
        encoder_attention_type="transient-global", global_block_size=4),
    row("pegasus_x", "encoder-decoder", "PegasusXForConditionalGeneration", _PAIR, block_size=8, num_global_tokens=4),
    row("bigbird_pegasus", "encoder-decoder", "BigBirdPegasusForConditionalGeneration", _PAIR,
        attention_type="original_full"),
    row("mvp", "encoder-decoder", "MvpForConditionalGeneration", _PAIR),
    row("perceiver", "vision", "PerceiverModel", numbers("inputs", 2, 0, 16, axis=1, sizes=(16, 24, 29)),
        tiny=False, d_model=16, num_latents=8, d_latents=32, num_self_attends_per_block=2, num_self_attention_heads=4,
        num_cross_attention_heads=2),
    row("cvt", "vision", "CvtModel", pixels(), tiny=False, embed_dim=[8, 16], num_heads=[1, 2], depth=[1, 2],
        patch_sizes=[7, 3], patch_stride=[4, 2], patch_padding=[2, 1], mlp_ratio=[2.0, 2.0],
        attention_drop_rate=[0.0, 0.0], drop_rate=[0.0, 0.0], drop_path_rate=[0.0, 0.0], qkv_bias=[True, True],
        cls_token=[False, True], qkv_projection_method=["dw_bn", "dw_bn"], kernel_qkv=[3, 3], padding_kv=[1, 1],
        stride_kv=[2, 2], padding_q=[1, 1], stride_q=[1, 1]),
    row("bit", "vision", "BitModel", pixels(), embedding_size=8, num_groups=4, **_STAGES),
    row("focalnet", "vision", "FocalNetModel", pixels(), embed_dim=8, depths=[1, 1], hidden_sizes=[8, 16],
        focal_levels=[2, 2], focal_windows=[3, 3], patch_size=4),
    row("glpn", "vision", "GLPNForDepthEstimation", pixels(), num_encoder_blocks=2, depths=[1, 1],
        sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2],
        mlp_ratios=[2, 2], decoder_hidden_size=8),
    row("hiera", "vision", "HieraModel", pixels(), tiny=False, image_size=[32, 32], embed_dim=16, depths=[1, 1],
        num_heads=[1, 2], patch_size=[7, 7], patch_stride=[4, 4], patch_padding=[3, 3], query_stride=[2, 2],
        masked_unit_size=[4, 4], num_query_pool=1),
    row("timesformer", "vision", "TimesformerModel", numbers("pixel_values", 0, 4, 3, 32, 32), num_frames=4),
    row("swin2sr", "vision", "Swin2SRForImageSuperResolution", pixels(), tiny=False, image_size=32, embed_dim=16,
        depths=[1, 1], num_heads=[2, 2], window_size=4, patch_size=1),
    row("swiftformer", "vision", "SwiftFormerModel", pixels(64), depths=[1, 1, 1, 1], embed_dims=[8, 16, 16, 24]),
    row("detr", "vision", "DetrForObjectDetection", pixels(64), **_DETECTION),
    row("conditional_detr", "vision", "ConditionalDetrForObjectDetection", pixels(64), **_DETECTION),
    row("vitdet", "vision", "VitDetModel", pixels(64), image_size=64, pretrain_image_size=32, window_size=4,
        window_block_indices=[0], use_relative_position_embeddings=True),
    row("sam", "vision", "SamVisionModel", pixels(64), image_size=64, num_pos_feats=16, output_channels=16,
        window_size=4, global_attn_indexes=[1], mlp_dim=64),
    row("dinov3", "vision", "DINOv3ViTModel", pixels()),
    row("upernet", "vision", "UperNetForSemanticSegmentation", pixels(64), hidden_size=16, pool_scales=[1, 2],
        use_auxiliary_head=False, backbone_config={"model_type": "convnext", "num_stages": 2, "hidden_sizes": [8, 16],
        "depths": [1, 1], "out_features": ["stage1", "stage2"]}),
    row("vilt", "vision and text", "ViltModel", together(_TEXT, pixels()), num_labels=4),
    row("lxmert", "vision and text", "LxmertModel", _pairs_with_images, l_layers=1, x_layers=1, r_layers=1,
        visual_feat_dim=12),
    row("git", "vision and text", "GitForCausalLM", _TEXT,
        vision_config={"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
        "image_size": 32, "patch_size": 8}),
    row("speecht5", "audio", "SpeechT5ForSpeechToText", together(waves(), decoder_input_ids=lambda size: integers(
        99, 2, 8, seed=size, low=3)), **_SPEECH),
    row("sew", "audio", "SEWModel", waves(), squeeze_factor=2, **_SPEECH),
    row("sew_d", "audio", "SEWDModel", waves(), squeeze_factor=2, max_position_embeddings=64, position_buckets=8,
        **_SPEECH),
    row("unispeech_sat", "audio", "UniSpeechSatModel", waves(), **_SPEECH),
    row("dac", "audio", "DacModel", numbers("input_values", 2, 1, 0, axis=2, sizes=(1600, 1920, 2240)), tiny=False,
        encoder_hidden_size=8, downsampling_ratios=[4, 4], decoder_hidden_size=32, n_codebooks=2, codebook_size=16,
        codebook_dim=4),
    row("mimi", "audio", "MimiModel", numbers("input_values", 2, 1, 0, axis=2, sizes=(1600, 1920, 2240)), tiny=False,
        num_filters=4, hidden_size=16, upsampling_ratios=[4, 4], num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, head_dim=8, intermediate_size=32, codebook_dim=8, codebook_size=16,
        vector_quantization_hidden_dimension=8, num_quantizers=2, upsample_groups=16),
    row("autoformer", "time series", "AutoformerModel", lambda size: {
        "past_values": noise(BATCHES[size], 31, seed=size),
        "past_time_features": noise(BATCHES[size], 31, 2, seed=size + 1),
        "past_observed_mask": torch.ones(BATCHES[size], 31),
        "future_values": noise(BATCHES[size], 8, seed=size + 2),
        "future_time_features": noise(BATCHES[size], 8, 2, seed=size + 3)},
        prediction_length=8, context_length=24, num_time_features=2, label_length=4, moving_average=5),
)  # fmt: skip
