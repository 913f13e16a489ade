"""Audio chat models with few, random weights: real configurations, models, processors, tokenizers, feature extractors.

Templates are ours, in the form of the published ones: which parts of a message they write, and where audio goes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .audio_models_for_tests import TEXT, _omni_thinker, chat_tokenizer, save_qwen2_audio


def template(audio: str) -> str:
    """Writes the parts of a message in their order, `audio` for each clip."""
    return (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
        "{% if part['type'] == 'audio' %}" + audio + "{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


TEXT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ONE_MARK_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ '<sound>' if message['content'] | selectattr('type', 'equalto', 'audio') | list else '' }}"
    "{{ message['content'] | selectattr('type', 'equalto', 'text') | map(attribute='text') | join }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_flamingo(folder: Path, *, music: bool = False) -> Path:
    """An Audio Flamingo 3, or with `music` a Music Flamingo, that takes 60 s: two windows of 30 s."""
    import torch
    import transformers
    from transformers import WhisperFeatureExtractor

    family = "MusicFlamingo" if music else "AudioFlamingo3"
    special = {
        "audio_token": "<sound>",
        **({"audio_bos": "<|sound_bos|>", "audio_eos": "<|sound_eos|>"} if music else {}),
    }
    tokenizer = chat_tokenizer(special)
    extractor = WhisperFeatureExtractor(feature_size=16, return_attention_mask=True)
    made = getattr(transformers, f"{family}Processor")(
        extractor, tokenizer, chat_template=ONE_MARK_TEMPLATE, max_audio_len=60
    )
    made.save_pretrained(folder)
    ids = tokenizer.convert_tokens_to_ids
    torch.manual_seed(0)
    more = {"audio_bos_token_id": ids("<|sound_bos|>"), "audio_eos_token_id": ids("<|sound_eos|>")} if music else {}
    config = getattr(transformers, f"{family}Config")(
        audio_config={
            "model_type": "audioflamingo3_encoder", "num_mel_bins": 16, "hidden_size": 16, "intermediate_size": 32,
            "num_hidden_layers": 1, "num_attention_heads": 2, "initializer_range": 0.3,
        },
        text_config={"model_type": "qwen2", "vocab_size": len(tokenizer), **TEXT},
        audio_token_id=ids("<sound>"),
        **more,
    )  # fmt: skip
    getattr(transformers, f"{family}ForConditionalGeneration")(config).save_pretrained(folder)
    return folder


def save_granite(folder: Path, *, plus: bool = False, adapter: bool = False) -> Path:
    """A Granite Speech, with `adapter` one with LoRA weights of its own."""
    import torch
    import transformers
    from transformers import GraniteSpeechFeatureExtractor, GraniteSpeechProcessor

    family = "GraniteSpeechPlus" if plus else "GraniteSpeech"
    tokenizer = chat_tokenizer({"audio_token": "<|audio|>"})
    GraniteSpeechProcessor(
        GraniteSpeechFeatureExtractor(), tokenizer, audio_token="<|audio|>", chat_template=TEXT_TEMPLATE
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(
        text_config={"model_type": "granite", "vocab_size": len(tokenizer), **TEXT},
        encoder_config={"num_layers": 2, "hidden_dim": 16, "num_heads": 2, "output_dim": 8, "feedforward_mult": 1}
        | ({"cat_hidden_layers": []} if plus else {}),
        projector_config={
            "model_type": "blip_2_qformer", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 32, "encoder_hidden_size": 16, "initializer_range": 0.3,
        },
        audio_token_index=tokenizer.convert_tokens_to_ids("<|audio|>"),
        has_lora_adapter=adapter,
        initializer_range=0.3,
    )  # fmt: skip
    model = getattr(transformers, f"{family}ForConditionalGeneration")(config)
    model.save_pretrained(folder)
    if adapter:
        # Its published files are from a version that nested the classes otherwise.
        save_adapter(
            folder, model, r".*language_model.*\.(q|v)_proj", ("model.language_model.", "language_model.model.")
        )
    return folder


def save_adapter(folder: Path, model: Any, layers: str, renamed: tuple[str, str] = ("", "")) -> None:
    """Random low-rank weights of rank 2 for the layers that the pattern finds, in peft's form."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": layers, "task_type": "CAUSAL_LM"}
    (folder / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": str(folder)}))
    weights = {}
    for name, layer in model.named_modules():
        if re.fullmatch(layers, name):
            key = "base_model.model." + name.replace(*renamed)
            weights[f"{key}.lora_A.weight"] = torch.randn(2, layer.in_features)
            weights[f"{key}.lora_B.weight"] = torch.randn(layer.out_features, 2)
    save_file(weights, folder / "adapter_model.safetensors")


def save_phi4(folder: Path) -> Path:
    """A Phi-4 Multimodal whose adapter for speech lies in a folder of its own."""
    import torch
    from transformers import (
        Phi4MultimodalConfig,
        Phi4MultimodalFeatureExtractor,
        Phi4MultimodalForCausalLM,
        Phi4MultimodalImageProcessor,
        Phi4MultimodalProcessor,
    )

    tokenizer = chat_tokenizer({"audio_token": "<|audio|>", "image_token": "<|image|>"})
    Phi4MultimodalProcessor(
        Phi4MultimodalImageProcessor(), Phi4MultimodalFeatureExtractor(), tokenizer, chat_template=TEXT_TEMPLATE
    ).save_pretrained(folder)
    torch.manual_seed(0)
    ids = tokenizer.convert_tokens_to_ids
    audio = {
        "hidden_size": 16, "intermediate_size": 32, "num_blocks": 2, "num_attention_heads": 2,
        "ext_pw_out_channel": 16, "depthwise_separable_out_channel": 16, "nemo_conv_channels": 16,
        "initializer_range": 0.3, "audio_token_id": ids("<|audio|>"),
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "image_token_id": ids("<|image|>"),
    }  # fmt: skip
    config = Phi4MultimodalConfig(
        vocab_size=len(tokenizer), **TEXT, audio_config=audio, vision_config=vision, pad_token_id=0,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model = Phi4MultimodalForCausalLM(config)
    model.save_pretrained(folder)
    save_adapter(folder / "speech-lora", model, r"model\.layers.*\.(qkv|o)_proj")
    return folder


def save_voxtral(folder: Path) -> Path:
    """A Voxtral with a vocabulary of bytes and the special tokens of the real one."""
    import torch
    from transformers import (
        MistralCommonBackend,
        VoxtralConfig,
        VoxtralForConditionalGeneration,
        VoxtralProcessor,
        WhisperFeatureExtractor,
    )

    special = [
        "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
        "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", "<SPECIAL_20>", "<SPECIAL_21>",
        "<SPECIAL_22>", "<SPECIAL_23>", "[AUDIO]", "[BEGIN_AUDIO]", *(f"<SPECIAL_{i}>" for i in range(26, 34)),
        "[TRANSCRIBE]", "<SPECIAL_35>", "<SPECIAL_36>", "<SPECIAL_37>", "<SPECIAL_38>", "<SPECIAL_39>",
    ]  # fmt: skip
    tekken = {
        "config": {
            "pattern": r"[^\r\n]|[\r\n]", "num_vocab_tokens": 256, "default_vocab_size": 256 + len(special),
            "default_num_special_tokens": len(special), "version": "v7",
        },
        "vocab": [
            {"rank": i, "token_bytes": base64.b64encode(bytes([i])).decode(), "token_str": None} for i in range(256)
        ],
        "special_tokens": [{"rank": i, "token_str": token, "is_control": True} for i, token in enumerate(special)],
        "audio": {
            "sampling_rate": 16000, "frame_rate": 12.5, "chunk_length_s": 30.0,
            "audio_encoding_config": {"num_mel_bins": 16, "hop_length": 160, "window_size": 400},
        },
    }  # fmt: skip
    file = folder / "tekken.json"
    file.write_text(json.dumps(tekken), encoding="utf-8")
    tokenizer = MistralCommonBackend(tokenizer_path=file)
    VoxtralProcessor(WhisperFeatureExtractor(feature_size=16), tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    config = VoxtralConfig(
        audio_config={
            "num_mel_bins": 16, "hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "initializer_range": 0.3,
        },
        text_config={
            "model_type": "llama", "vocab_size": 256 + len(special), **TEXT, "head_dim": 8, "bos_token_id": 1,
            "eos_token_id": 2, "pad_token_id": 11,
        },
        audio_token_id=24,
    )  # fmt: skip
    VoxtralForConditionalGeneration(config).save_pretrained(folder)
    return folder


_GEMMA = {
    "image_token": "<image_soft_token>", "audio_token": "<audio_soft_token>", "boi_token": "<boi>",
    "eoi_token": "<eoi>", "boa_token": "<boa>", "eoa_token": "<eoa>",
}  # fmt: skip


def save_gemma3n(folder: Path) -> Path:
    """A Gemma 3n: 188 tokens for every clip."""
    import torch
    from transformers import (
        Gemma3nAudioFeatureExtractor,
        Gemma3nConfig,
        Gemma3nForConditionalGeneration,
        Gemma3nProcessor,
        SiglipImageProcessor,
    )

    tokenizer = chat_tokenizer(_GEMMA)
    Gemma3nProcessor(
        Gemma3nAudioFeatureExtractor(), SiglipImageProcessor(), tokenizer,
        chat_template=template("<audio_soft_token>"),
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    ids, size = tokenizer.convert_tokens_to_ids, len(tokenizer)
    text = {
        **TEXT, "vocab_size": size, "num_hidden_layers": 4, "head_dim": 8, "vocab_size_per_layer_input": size,
        "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 2, "laurel_rank": 4, "altup_num_inputs": 2,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "activation_sparsity_pattern": [0.0] * 4,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None,
    }  # fmt: skip
    audio = {
        "vocab_size": 8, "vocab_offset": ids("<audio_soft_token>"), "hidden_size": 32, "conf_num_attention_heads": 2,
        "conf_num_hidden_layers": 1, "sscp_conv_channel_size": [8, 4],
    }  # fmt: skip
    vision = {
        "vocab_size": 1,
        "vocab_offset": ids("<image_soft_token>"),
        "hidden_size": 32,
        "architecture": "test_resnet",
    }
    config = Gemma3nConfig(
        text_config=text, audio_config=audio, vision_config=vision, audio_token_id=ids("<audio_soft_token>"),
        image_token_id=ids("<image_soft_token>"), boa_token_id=ids("<boa>"), eoa_token_id=ids("<eoa>"),
        boi_token_id=ids("<boi>"), eoi_token_id=ids("<eoi>"), initializer_range=0.3,
    )  # fmt: skip
    Gemma3nForConditionalGeneration(config).save_pretrained(folder)
    return folder


def save_gemma4(folder: Path, *, unified: bool = False) -> Path:
    """A Gemma 4 with audio (E2B, E4B), or with `unified` one without towers (12B)."""
    import torch
    import transformers

    family = "Gemma4Unified" if unified else "Gemma4"

    def made(name: str, *given: Any, **options: Any) -> Any:
        return getattr(transformers, f"{family}{name}")(*given, **options)

    tokenizer = chat_tokenizer(_GEMMA | {"video_token": "<|video|>"})
    made(
        "Processor", made("AudioFeatureExtractor"), made("ImageProcessor"), tokenizer, made("VideoProcessor"),
        chat_template=template("<audio_soft_token>"),
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    ids, size = tokenizer.convert_tokens_to_ids, len(tokenizer)
    text = {
        **TEXT, "vocab_size": size, "head_dim": 8, "global_head_dim": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None,
    }  # fmt: skip
    if not unified:
        text |= {"vocab_size_per_layer_input": size, "hidden_size_per_layer_input": 8}
    towers = {
        "audio_config": {
            "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "subsampling_conv_channels": [128, 4],
            "output_proj_dims": 32, "initializer_range": 0.3,
        },
        "vision_config": {
            "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "head_dim": 16, "num_key_value_heads": 2, "position_embedding_size": 64,
        },
    }  # fmt: skip
    if unified:
        towers = {
            "audio_config": {"initializer_range": 0.3},
            "vision_config": {"mm_embed_dim": 32, "mm_posemb_size": 16},
        }
    config = made(
        "Config", text_config=text, **towers, audio_token_id=ids("<audio_soft_token>"),
        image_token_id=ids("<image_soft_token>"), video_token_id=ids("<|video|>"), boa_token_id=ids("<boa>"),
        eoa_token_index=ids("<eoa>"), boi_token_id=ids("<boi>"), eoi_token_id=ids("<eoi>"), initializer_range=0.3,
    )  # fmt: skip
    made("ForConditionalGeneration", config).save_pretrained(folder)
    return folder


def save_nemotron(folder: Path) -> Path:
    """A Nemotron 3 Nano Omni: attention and state-space layers, the audio encoder of Parakeet."""
    import torch
    from transformers import (
        NemotronH_Omni_Reasoning_V3,
        NemotronH_Omni_Reasoning_V3_Config,
        NemotronH_Omni_Reasoning_V3ImageProcessor,
        NemotronH_Omni_Reasoning_V3Processor,
        NemotronH_Omni_Reasoning_V3VideoProcessor,
        ParakeetFeatureExtractor,
    )

    tokenizer = chat_tokenizer(
        {
            "image_token": "<image>", "audio_token": "<so_embedding>", "audio_start": "<so_start>",
            "audio_end": "<so_end>", "image_start": "<img>", "image_end": "</img>",
        }
    )  # fmt: skip
    NemotronH_Omni_Reasoning_V3Processor(
        NemotronH_Omni_Reasoning_V3ImageProcessor(), NemotronH_Omni_Reasoning_V3VideoProcessor(), tokenizer,
        ParakeetFeatureExtractor(feature_size=16), chat_template=template("<so_embedding>"),
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    ids = tokenizer.convert_tokens_to_ids
    small = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    config = NemotronH_Omni_Reasoning_V3_Config(
        text_config={
            **small, "vocab_size": len(tokenizer), "layers_block_type": ["attention", "mamba", "attention"],
            "num_key_value_heads": 2, "head_dim": 8, "ssm_state_size": 8, "mamba_num_heads": 4, "mamba_head_dim": 8,
            "n_groups": 2, "chunk_size": 8, "initializer_range": 0.3, "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32, "max_img_size": 64,
            "video_temporal_patch_size": 2,
        },
        audio_config={
            **small, "num_hidden_layers": 1, "subsampling_conv_channels": 8, "num_mel_bins": 16,
            "projection_hidden_size": 16, "projection_bias": False, "initializer_range": 0.3,
        },
        vision_hidden_size=16, projector_hidden_size=16, image_token_id=ids("<image>"),
        audio_token_id=ids("<so_embedding>"), video_token_id=ids("<image>"),
    )  # fmt: skip
    NemotronH_Omni_Reasoning_V3(config).save_pretrained(folder)
    return folder


def _loud_thinker(tokenizer: Any) -> dict[str, Any]:
    """Weights so large that audio makes a difference."""
    parts = _omni_thinker(tokenizer)
    parts["audio_config"] |= {"initializer_range": 0.5}
    return parts | {"initializer_range": 0.5}


def save_omni3(folder: Path, *, whole: bool = False) -> Path:
    """The hearing half of a Qwen3-Omni, or with `whole` all of it, with its own processor."""
    import torch
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3OmniMoeConfig,
        Qwen3OmniMoeForConditionalGeneration,
        Qwen3OmniMoeProcessor,
        Qwen3OmniMoeThinkerConfig,
        Qwen3OmniMoeThinkerForConditionalGeneration,
        WhisperFeatureExtractor,
    )

    tokenizer = chat_tokenizer()
    Qwen3OmniMoeProcessor(
        Qwen2VLImageProcessor(), Qwen2VLVideoProcessor(), WhisperFeatureExtractor(feature_size=16), tokenizer,
        chat_template=template("<|audio_bos|><|AUDIO|><|audio_eos|>"),
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    parts = _loud_thinker(tokenizer)
    parts["audio_config"] |= {"downsample_hidden_size": 8, "n_window": 50, "n_window_infer": 400}
    parts["vision_config"] = {
        "depth": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": 16,
        "deepstack_visual_indexes": [0],
        "num_position_embeddings": 16,
    }
    parts["text_config"] |= {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    if whole:
        small = {**TEXT, "head_dim": 8, "num_code_groups": 2, "vocab_size": 32}
        del small["initializer_range"]
        config = Qwen3OmniMoeConfig(
            thinker_config=parts,
            talker_config={
                "thinker_hidden_size": 16,
                "num_code_groups": 2,
                "spatial_merge_size": 2,
                "code_predictor_config": small,
                "text_config": {
                    **small,
                    "num_experts": 2,
                    "num_experts_per_tok": 1,
                    "moe_intermediate_size": 8,
                    "shared_expert_intermediate_size": 8,
                },
            },
            code2wav_config={
                "codebook_size": 8,
                "hidden_size": 16,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "intermediate_size": 16,
                "num_hidden_layers": 1,
                "num_quantizers": 2,
                "decoder_dim": 32,
            },
            enable_audio_output=True,
        )
        Qwen3OmniMoeForConditionalGeneration(config).save_pretrained(folder)
    else:
        Qwen3OmniMoeThinkerForConditionalGeneration(Qwen3OmniMoeThinkerConfig(**parts)).save_pretrained(folder)
    return folder


def save_whole_omni(folder: Path) -> Path:
    """A whole Qwen2.5-Omni, its speaking half too, with its own processor."""
    import torch
    from transformers import (
        Qwen2_5OmniConfig,
        Qwen2_5OmniForConditionalGeneration,
        Qwen2_5OmniProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        WhisperFeatureExtractor,
    )

    tokenizer = chat_tokenizer()
    Qwen2_5OmniProcessor(
        Qwen2VLImageProcessor(), Qwen2VLVideoProcessor(), WhisperFeatureExtractor(feature_size=16, chunk_length=4),
        tokenizer, chat_template=template("<|audio_bos|><|AUDIO|><|audio_eos|>"),
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Qwen2_5OmniConfig(
        thinker_config=_loud_thinker(tokenizer),
        talker_config={**small, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 32, "embedding_size": 16},
        token2wav_config={
            "dit_config": {
                "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8, "ff_mult": 1,
                "emb_dim": 8, "enc_dim": 8, "enc_emb_dim": 8, "mel_dim": 8, "num_embeds": 8, "enc_channels": [8] * 5,
                "enc_attention_channels": 4, "enc_se_channels": 4,
            },
            "bigvgan_config": {"mel_dim": 8, "upsample_initial_channel": 64},
        },
        enable_audio_output=True,
    )  # fmt: skip
    Qwen2_5OmniForConditionalGeneration(config).save_pretrained(folder)
    return folder


def _save_own_qwen2_audio(folder: Path) -> Path:
    from transformers import AutoProcessor

    save_qwen2_audio(folder)
    processor = AutoProcessor.from_pretrained(folder)
    processor.chat_template = template("<|audio_bos|><|AUDIO|><|audio_eos|>")
    processor.save_pretrained(folder)
    return folder


CASES: Mapping[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "qwen2_audio": (_save_own_qwen2_audio, ()),
    "qwen2_5_omni": (save_whole_omni, ("torchvision",)),
    "qwen3_omni_moe": (partial(save_omni3, whole=True), ("torchvision",)),
    "qwen3_omni_moe_thinker": (save_omni3, ("torchvision",)),
    "voxtral": (save_voxtral, ("mistral_common",)),
    "gemma3n": (save_gemma3n, ("timm", "torchvision")),
    "gemma4": (save_gemma4, ("torchvision",)),
    "gemma4_unified": (partial(save_gemma4, unified=True), ("torchvision",)),
    "nemotron_h_omni": (save_nemotron, ("torchvision",)),
    "phi4_multimodal": (save_phi4, ("torchvision",)),
    "audioflamingo3": (save_flamingo, ()),
    "musicflamingo": (partial(save_flamingo, music=True), ()),
    "granite_speech": (partial(save_granite, adapter=True), ("torchaudio",)),
    "granite_speech_plus": (partial(save_granite, plus=True), ("torchaudio",)),
}
"""By `model_type`: how a model is made, and the packages that its processor needs beside the extra `torch`."""


def lacking(name: str) -> str:
    """Why a case cannot run here, "" if it can."""
    missing = [package for package in CASES[name][1] if find_spec(package) is None]
    return f"needs {', '.join(missing)}" if missing else ""
