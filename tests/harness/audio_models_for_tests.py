"""Small random models of sound and text, with vocabularies of bytes, made without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

RATE = 16_000
SPECIAL = {
    "audio_token": "<|AUDIO|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
    "image_token": "<|IMAGE|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
}
TEXT = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "initializer_range": 0.5,
}
AUDIO = {"num_mel_bins": 16, "d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}


def sound(seconds: float, seed: int, rate: int = RATE) -> np.ndarray:
    """(T,) float32: a few tones of their own and a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    tones = sum(np.sin(2 * np.pi * pitch * t) for pitch in rng.uniform(80, 3000, 4))
    return (0.1 * tones + 0.01 * rng.standard_normal(t.size)).astype(np.float32)


def chat_tokenizer(special: dict[str, str] = SPECIAL) -> Any:
    """One token for a byte, and the marks of a dialogue."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>", *special.values()])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        padding_side="left",
        extra_special_tokens=special,
    )


def _save_chat_processor(folder: Path) -> Any:
    from transformers import Qwen2AudioProcessor, WhisperFeatureExtractor

    tokenizer = chat_tokenizer()
    # The processor of Qwen2.5-Omni reads pictures too and would need torchvision; this one gives the same inputs.
    Qwen2AudioProcessor(WhisperFeatureExtractor(feature_size=16, chunk_length=4), tokenizer).save_pretrained(folder)
    return tokenizer


def save_qwen2_audio(folder: Path) -> Path:
    """A Qwen2-Audio: every clip becomes a window of 4 s, silence included."""
    import torch
    from transformers import Qwen2AudioConfig, Qwen2AudioForConditionalGeneration

    tokenizer = _save_chat_processor(folder)
    torch.manual_seed(0)
    config = Qwen2AudioConfig(
        audio_config={"model_type": "qwen2_audio_encoder", "max_source_positions": 200, **AUDIO},
        text_config={"model_type": "qwen2", "vocab_size": len(tokenizer), **TEXT},
        audio_token_index=tokenizer.convert_tokens_to_ids("<|AUDIO|>"),
    )
    Qwen2AudioForConditionalGeneration(config).save_pretrained(folder)
    return folder


def _omni_thinker(tokenizer: Any) -> dict[str, Any]:
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in SPECIAL.items()}
    return {
        "audio_config": {"max_source_positions": 200, "output_dim": 16, "n_window": 20, **AUDIO},
        "vision_config": {
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 16,
            "fullatt_block_indexes": [0],
        },
        "text_config": {
            "vocab_size": len(tokenizer),
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]},
            **TEXT,
        },
        "audio_token_id": ids["audio_token"],
        "image_token_id": ids["image_token"],
        "video_token_id": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"],
        "audio_end_token_id": ids["audio_eos_token"],
        "vision_start_token_id": ids["vision_bos_token"],
        "vision_end_token_id": ids["vision_eos_token"],
    }


def save_omni_thinker(folder: Path) -> Path:
    """The hearing half of a Qwen2.5-Omni."""
    import torch
    from transformers import Qwen2_5OmniThinkerConfig, Qwen2_5OmniThinkerForConditionalGeneration

    tokenizer = _save_chat_processor(folder)
    torch.manual_seed(0)
    model = Qwen2_5OmniThinkerForConditionalGeneration(Qwen2_5OmniThinkerConfig(**_omni_thinker(tokenizer)))
    model.save_pretrained(folder)
    return folder


def save_omni(folder: Path) -> Path:
    """A whole Qwen2.5-Omni, whose speaking half is switched off."""
    import torch
    from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration

    tokenizer = _save_chat_processor(folder)
    torch.manual_seed(0)
    config = Qwen2_5OmniConfig(
        thinker_config=_omni_thinker(tokenizer), talker_config={}, token2wav_config={}, enable_audio_output=False
    )
    Qwen2_5OmniForConditionalGeneration(config).save_pretrained(folder)
    return folder


def save_clap(folder: Path, *, fusion: bool = False) -> Path:
    """A CLAP that hears 1 s at 16 kHz and has a vocabulary of letters."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import ClapConfig, ClapFeatureExtractor, ClapModel, ClapProcessor, PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    words = [*special, *"abcdefghijklmnopqrstuvwxyz"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", model_max_length=32
    )
    extractor = ClapFeatureExtractor(
        sampling_rate=RATE,
        hop_length=160,
        max_length_s=1,
        fft_window_size=512,
        frequency_max=8000,
        truncation="fusion" if fusion else "rand_trunc",
    )
    ClapProcessor(extractor, fast).save_pretrained(folder)
    torch.manual_seed(0)
    config = ClapConfig(
        text_config={
            "vocab_size": len(words),
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_position_embeddings": 40,
            "initializer_factor": 5.0,
        },
        audio_config={
            "num_mel_bins": 64,
            "spec_size": 128,
            "window_size": 4,
            "patch_size": 4,
            "patch_stride": [4, 4],
            "patch_embeds_hidden_size": 16,
            "hidden_size": 32,
            "depths": [1, 1],
            "num_attention_heads": [2, 2],
            "num_hidden_layers": 2,
            "enable_fusion": fusion,
            "initializer_factor": 20.0,
        },
        projection_dim=8,
    )
    ClapModel(config).save_pretrained(folder)
    return folder


def save_sentence_transformer(folder: Path, transformer: Path, *, prompts: dict[str, str] | None = None) -> Path:
    """A sentence-transformers model around a Qwen2-Audio, with the last token's state as vector."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = [Transformer(str(transformer)), Pooling(16, "lasttoken")]
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(folder))
    return folder
