"""Models of transformers, made from configurations of two layers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from .base import (
    Case,
    Inputs,
    Maker,
    Row,
    attribute,
    integers,
    noise,
    numbers,
    pixels,
    sequences_to_sequences,
    together,
    tokens,
    waves,
)

#: what a configuration is given of this, if it has it at all
TINY: dict[str, Any] = {
    "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "intermediate_size": 64, "max_position_embeddings": 64, "embedding_size": 32,
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts": 4, "num_local_experts": 4,
    "num_experts_per_tok": 2, "image_size": 32, "patch_size": 8, "use_cache": False,
}  # fmt: skip

#: parts of names of options that draw random numbers in training
RANDOM = ("drop", "jitter", "mask_time_prob", "mask_feature_prob", "apply_spec_augment")


def configuration(config_class: Any, options: Mapping[str, Any], tiny: bool = True) -> Any:
    """A configuration of two layers that draws no random numbers; options that are mappings are configurations."""
    known = config_class()
    given = {name: value for name, value in TINY.items() if tiny and hasattr(known, name)}
    given |= {k: v for k, v in options.items() if k != "architectures"}
    for name, value in known.to_dict().items():
        if name not in given and isinstance(value, int | float) and any(part in name for part in RANDOM):
            given[name] = type(value)(0)
    return config_class(**given)


def build(name: str, options: Mapping[str, Any], inputs: Maker, tiny: bool) -> Case:
    """A model of transformers by the name of its class."""
    made = attribute("transformers", name)
    module = made(configuration(made.config_class, options, tiny)).float()
    if hasattr(module.config, "use_cache"):
        module.config.use_cache = False
    return Case(module, inputs)


def row(name: str, family: str, model: str, inputs: Maker, tiny: bool = True, **options: Any) -> Row:
    """A row of the zoo; `tiny=False` leaves out the sizes of TINY, and `skip` is a Row's `without`."""
    skip = options.pop("skip", {})
    return Row(name, f"transformers, {family}", "transformers", partial(build, model, options, inputs, tiny), skip)


_TEXT = tokens()
_PAIR = sequences_to_sequences()
_STATE: dict[str, Any] = {"n_groups": 1, "state_size": 8, "num_heads": 8, "head_dim": 8, "chunk_size": 8}
_CONVOLUTIONS: dict[str, Any] = {
    "conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
_STAGES: dict[str, Any] = {"hidden_sizes": [8, 16], "depths": [1, 1]}
_WINDOWS: dict[str, Any] = {"embed_dim": 16, "depths": [1, 2], "num_heads": [2, 2], "window_size": 4, "patch_size": 4}


def _mel(bins: int, length: int, name: str = "input_features") -> Maker:
    """Spectrograms, in batches of varying size: (batch, bins, length), (batch, length, bins) with negative `bins`."""
    return numbers(name, 0, bins, length) if bins > 0 else numbers(name, 0, length, -bins)


def _series(size: int) -> Inputs:
    """Values in the past and in the future with what is known of their times."""
    batch = (2, 3, 5)[size]
    return {
        "past_values": noise(batch, 24 + 7, seed=size),
        "past_time_features": noise(batch, 24 + 7, 2, seed=size + 1),
        "past_observed_mask": torch.ones(batch, 24 + 7),
        "future_values": noise(batch, 8, seed=size + 2),
        "future_time_features": noise(batch, 8, 2, seed=size + 3),
    }


_TIMES: dict[str, Any] = {"prediction_length": 8, "context_length": 24, "num_time_features": 2, "d_model": 16}
_CLIP: dict[str, Any] = {
    "text_config": {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "max_position_embeddings": 32, "eos_token_id": 2},
    "vision_config": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                      "image_size": 32, "patch_size": 8},
}  # fmt: skip

ROWS: tuple[Row, ...] = (
    row("bert", "encoder", "BertModel", _TEXT),
    row("roberta", "encoder", "RobertaForMaskedLM", _TEXT),
    row("distilbert", "encoder", "DistilBertModel", _TEXT, dim=32, hidden_dim=64, n_layers=2, n_heads=4),
    row("albert", "encoder", "AlbertModel", _TEXT),
    row("electra", "encoder", "ElectraForPreTraining", _TEXT),
    row("deberta_v2", "encoder", "DebertaV2Model", _TEXT, relative_attention=True, position_buckets=8,
        pos_att_type=["p2c", "c2p"]),
    row("mpnet", "encoder", "MPNetModel", _TEXT),
    row("fnet", "encoder", "FNetModel", tokens(mask=False), tpu_short_seq_length=16),
    row("convbert", "encoder", "ConvBertModel", _TEXT),
    row("modernbert", "encoder", "ModernBertModel", _TEXT, local_attention=8),
    row("nystromformer", "encoder", "NystromformerModel", tokens(mask=False), num_landmarks=8,
        segment_means_seq_len=16, skip={"dynamic": "takes one length", "lengths": "takes one length"}),
    row("roformer", "encoder", "RoFormerModel", _TEXT),
    row("squeezebert", "encoder", "SqueezeBertModel", _TEXT),
    row("big_bird", "encoder", "BigBirdModel", _TEXT, attention_type="original_full"),
    row("longformer", "encoder", "LongformerModel", tokens(mask=False), attention_window=[8, 8]),
    row("funnel", "encoder", "FunnelModel", _TEXT, block_sizes=[1, 1], num_decoder_layers=1, n_head=4, d_head=8,
        d_inner=64, tiny=False, d_model=32, vocab_size=99),
    row("xlnet", "encoder", "XLNetModel", _TEXT, tiny=False, vocab_size=99, d_model=32, n_layer=2, n_head=4,
        d_inner=64),
    row("esm", "encoder", "EsmModel", tokens(vocabulary=33), vocab_size=33, mask_token_id=32,
        position_embedding_type="rotary"),
    row("canine", "encoder", "CanineModel", tokens(factor=2), local_transformer_stride=16, num_hash_buckets=64,
        max_position_embeddings=128, downsampling_rate=4),
    row("gpt2", "decoder", "GPT2LMHeadModel", _TEXT, n_embd=32, n_layer=2, n_head=4, n_positions=64),
    row("gpt_neox", "decoder", "GPTNeoXForCausalLM", _TEXT),
    row("gptj", "decoder", "GPTJForCausalLM", _TEXT, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4),
    row("gpt_neo", "decoder", "GPTNeoForCausalLM", _TEXT, attention_types=[[["global", "local"], 1]], window_size=8),
    row("opt", "decoder", "OPTForCausalLM", _TEXT, ffn_dim=64, word_embed_proj_dim=32),
    row("bloom", "decoder", "BloomForCausalLM", _TEXT, n_layer=2, n_head=4),
    row("falcon", "decoder", "FalconForCausalLM", _TEXT, tiny=False, vocab_size=99, hidden_size=32,
        num_hidden_layers=2, num_attention_heads=4),
    row("mpt", "decoder", "MptForCausalLM", _TEXT, n_heads=4, n_layers=2, max_seq_len=64),
    row("llama", "decoder", "LlamaForCausalLM", _TEXT),
    row("mistral", "decoder", "MistralForCausalLM", _TEXT, sliding_window=8),
    row("qwen2", "decoder", "Qwen2ForCausalLM", _TEXT),
    row("qwen3", "decoder", "Qwen3ForCausalLM", _TEXT),
    row("gemma2", "decoder", "Gemma2ForCausalLM", _TEXT, sliding_window=8),
    row("gemma3", "decoder", "Gemma3ForCausalLM", _TEXT, sliding_window=8),
    row("phi", "decoder", "PhiForCausalLM", _TEXT),
    row("phi3", "decoder", "Phi3ForCausalLM", _TEXT),
    row("olmo2", "decoder", "Olmo2ForCausalLM", _TEXT),
    row("cohere", "decoder", "CohereForCausalLM", _TEXT),
    row("stablelm", "decoder", "StableLmForCausalLM", _TEXT),
    row("starcoder2", "decoder", "Starcoder2ForCausalLM", _TEXT),
    row("granite", "decoder", "GraniteForCausalLM", _TEXT),
    row("smollm3", "decoder", "SmolLM3ForCausalLM", _TEXT),
    row("t5", "encoder-decoder", "T5ForConditionalGeneration", _PAIR),
    row("umt5", "encoder-decoder", "UMT5ForConditionalGeneration", _PAIR),
    row("bart", "encoder-decoder", "BartForConditionalGeneration", _PAIR),
    row("pegasus", "encoder-decoder", "PegasusForConditionalGeneration", _PAIR),
    row("m2m_100", "encoder-decoder", "M2M100ForConditionalGeneration", _PAIR),
    row("blenderbot", "encoder-decoder", "BlenderbotForConditionalGeneration", _PAIR),
    row("led", "encoder-decoder", "LEDForConditionalGeneration", sequences_to_sequences(mask=False),
        attention_window=8, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    row("prophetnet", "encoder-decoder", "ProphetNetForConditionalGeneration", _PAIR, tiny=False, vocab_size=99,
        hidden_size=32, encoder_ffn_dim=64, decoder_ffn_dim=64, num_encoder_layers=2, num_decoder_layers=2,
        num_encoder_attention_heads=4, num_decoder_attention_heads=4, max_position_embeddings=64),
    row("vit", "vision", "ViTForImageClassification", pixels()),
    row("beit", "vision", "BeitModel", pixels(), use_relative_position_bias=True),
    row("dinov2", "vision", "Dinov2Model", pixels()),
    row("swin", "vision", "SwinModel", pixels(), tiny=False, image_size=32, **_WINDOWS),
    row("swinv2", "vision", "Swinv2Model", pixels(), tiny=False, image_size=32, **_WINDOWS),
    row("segformer", "vision", "SegformerForSemanticSegmentation", pixels(), num_encoder_blocks=2, depths=[1, 1],
        sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2],
        mlp_ratios=[2, 2], decoder_hidden_size=16),
    row("convnextv2", "vision", "ConvNextV2Model", pixels(), num_stages=2, patch_size=4, **_STAGES),
    row("regnet", "vision", "RegNetModel", pixels(), embedding_size=8, groups_width=8, **_STAGES),
    row("mobilevit", "vision", "MobileViTModel", pixels(), patch_size=2, hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32]),
    row("pvt_v2", "vision", "PvtV2Model", pixels(), num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
        hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2]),
    row("poolformer", "vision", "PoolFormerModel", pixels(), num_encoder_blocks=2, depths=[1, 1],
        hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2], padding=[2, 1], patch_size=7),
    row("dpt", "vision", "DPTForDepthEstimation", pixels(), num_hidden_layers=4,
        backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16),
    row("vit_mae", "vision", "ViTMAEModel", together(pixels(), noise=lambda size: noise((2, 3, 5)[size], 16)),
        decoder_num_hidden_layers=1, decoder_hidden_size=16, decoder_intermediate_size=32,
        decoder_num_attention_heads=2),
    row("videomae", "vision", "VideoMAEModel", numbers("pixel_values", 0, 4, 3, 32, 32), num_frames=4),
    row("vivit", "vision", "VivitModel", numbers("pixel_values", 0, 4, 3, 32, 32), num_frames=4,
        tubelet_size=[2, 8, 8]),
    row("yolos", "vision", "YolosForObjectDetection", pixels(), image_size=[32, 32], num_detection_tokens=5),
    row("clip", "vision and text", "CLIPModel", together(tokens(mask=False), pixels()), projection_dim=16, **_CLIP),
    row("siglip", "vision and text", "SiglipModel", together(tokens(mask=False), pixels()), **_CLIP),
    row("wav2vec2", "audio", "Wav2Vec2ForCTC", waves(), **_CONVOLUTIONS),
    row("hubert", "audio", "HubertModel", waves(), **_CONVOLUTIONS),
    row("wavlm", "audio", "WavLMModel", waves(), **_CONVOLUTIONS),
    row("wav2vec2_conformer", "audio", "Wav2Vec2ConformerModel", waves(), conv_depthwise_kernel_size=7,
        position_embeddings_type="relative", **_CONVOLUTIONS),
    row("wav2vec2_bert", "audio", "Wav2Vec2BertModel", numbers("input_features", 2, 0, 16, axis=1, sizes=(24, 32, 37)),
        feature_projection_input_dim=16, conv_depthwise_kernel_size=7),
    row("whisper", "audio", "WhisperForConditionalGeneration", together(
        _mel(16, 64), decoder_input_ids=lambda size: integers(99, (2, 3, 5)[size], 8, low=3)),
        num_mel_bins=16, max_source_positions=32, max_target_positions=32),
    row("audio_spectrogram", "audio", "ASTModel", _mel(-16, 48, "input_values"), max_length=48, num_mel_bins=16,
        patch_size=8, frequency_stride=8, time_stride=8),
    row("speech_to_text", "audio", "Speech2TextForConditionalGeneration", together(
        _mel(-16, 48), decoder_input_ids=lambda size: integers(99, (2, 3, 5)[size], 8, low=3)),
        input_feat_per_channel=16, conv_channels=32, max_source_positions=64, max_target_positions=32),
    row("moonshine", "audio", "MoonshineForConditionalGeneration", together(
        waves(4000), decoder_input_ids=lambda size: integers(99, 2, (8, 10, 13)[size], low=3)),
        encoder_num_hidden_layers=2, decoder_num_hidden_layers=2, encoder_num_attention_heads=4,
        decoder_num_attention_heads=4, encoder_num_key_value_heads=4, decoder_num_key_value_heads=4),
    row("encodec", "audio", "EncodecModel", numbers(
        "input_values", 2, 1, 0, axis=2, sizes=(1600, 1920, 2240)), tiny=False, num_filters=4, hidden_size=16,
        codebook_dim=16, upsampling_ratios=[8, 5], num_lstm_layers=1),
    row("mixtral", "mixture of experts", "MixtralForCausalLM", _TEXT),
    row("qwen2_moe", "mixture of experts", "Qwen2MoeForCausalLM", _TEXT),
    row("qwen3_moe", "mixture of experts", "Qwen3MoeForCausalLM", _TEXT),
    row("olmoe", "mixture of experts", "OlmoeForCausalLM", _TEXT),
    row("deepseek_v3", "mixture of experts", "DeepseekV3ForCausalLM", _TEXT, n_routed_experts=4, n_group=2,
        topk_group=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
        num_key_value_heads=4, first_k_dense_replace=1),
    row("gpt_oss", "mixture of experts", "GptOssForCausalLM", _TEXT, sliding_window=8),
    row("granite_moe", "mixture of experts", "GraniteMoeForCausalLM", _TEXT),
    row("switch", "mixture of experts", "SwitchTransformersForConditionalGeneration", _PAIR,
        num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    row("mamba", "state space", "MambaForCausalLM", tokens(mask=False), state_size=8, time_step_rank=4),
    row("mamba2", "state space", "Mamba2ForCausalLM", tokens(mask=False), **_STATE),
    row("falcon_mamba", "state space", "FalconMambaForCausalLM", tokens(mask=False), state_size=8, time_step_rank=4),
    row("jamba", "state space", "JambaForCausalLM", _TEXT, attn_layer_period=2, attn_layer_offset=1,
        expert_layer_period=2, expert_layer_offset=1, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False),
    row("bamba", "state space", "BambaForCausalLM", _TEXT, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8,
        mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=8),
    row("recurrent_gemma", "state space", "RecurrentGemmaForCausalLM", tokens(mask=False), lru_width=32,
        attention_window_size=8, block_types=["recurrent", "attention"]),
    row("rwkv", "state space", "RwkvForCausalLM", tokens(mask=False), attention_hidden_size=32, context_length=64),
    row("lfm2", "state space", "Lfm2ForCausalLM", _TEXT, layer_types=["conv", "full_attention"], block_ff_dim=64),
    row("xlstm", "state space", "xLSTMForCausalLM", tokens(mask=False), tiny=False, vocab_size=99, hidden_size=32,
        embedding_dim=32, num_hidden_layers=2, num_blocks=2, num_heads=2, qk_dim_factor=0.5, chunk_size=8),
    row("qwen3_next", "state space", "Qwen3NextForCausalLM", _TEXT, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=8, linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"]),
    row("patchtst", "time series", "PatchTSTForPrediction", numbers("past_values", 0, 32, 3), context_length=32,
        patch_length=8, patch_stride=8, num_input_channels=3, prediction_length=8, ffn_dim=32),
    row("patchtsmixer", "time series", "PatchTSMixerForPrediction", numbers("past_values", 0, 32, 3),
        context_length=32, patch_length=8, patch_stride=8, num_input_channels=3, prediction_length=8),
    row("time_series", "time series", "TimeSeriesTransformerModel", _series, **_TIMES),
    row("informer", "time series", "InformerModel", _series, **_TIMES),
)  # fmt: skip
