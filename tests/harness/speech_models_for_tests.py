"""GLM-ASR and Qwen3-ASR with few, random weights, made without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_GLM_TEMPLATE = (
    "{% for message in messages %}<|user|>{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|begin_of_audio|><|pad|><|end_of_audio|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|audio_start|><|audio_pad|><|audio_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
)
_TEXT = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "initializer_range": 0.6,
}


def bytes_tokenizer(special: list[str], **named: str) -> Any:
    """One token per byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    vocabulary = {letter: i for i, letter in enumerate(bytes_to_unicode().values())}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=special[0], eos_token=special[0], **named)


def _only_printable(model: Any, tokenizer: Any) -> None:
    """Only printable ASCII and the end are written, so that texts can be compared token by token."""
    size = model.config.text_config.vocab_size
    ends = {tokenizer.eos_token_id}
    model.generation_config.suppress_tokens = [i for i in range(94, size) if i not in ends]
    model.generation_config.eos_token_id = sorted(ends)
    model.generation_config.pad_token_id = tokenizer.eos_token_id


def save_tiny_glm(folder: Path, *, seed: int = 0) -> Path:
    """Model, processor and generation settings in `folder`, as transformers saves them."""
    import torch
    from transformers import GlmAsrConfig, GlmAsrForConditionalGeneration, GlmAsrProcessor, WhisperFeatureExtractor

    special = ["<|endoftext|>", "<|user|>", "<|assistant|>", "<|begin_of_audio|>", "<|end_of_audio|>", "<|pad|>"]
    tokenizer = bytes_tokenizer(special)
    GlmAsrProcessor(
        WhisperFeatureExtractor(feature_size=16), tokenizer, chat_template=_GLM_TEMPLATE, max_audio_len=60
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    audio = {"hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = GlmAsrForConditionalGeneration(
        GlmAsrConfig(
            text_config={"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, **_TEXT},
            audio_config={**audio, "num_mel_bins": 16, "initializer_range": 0.3},
            audio_token_id=tokenizer.convert_tokens_to_ids("<|pad|>"),
        )
    )
    _only_printable(model, tokenizer)
    model.save_pretrained(folder)
    return folder


def save_tiny_qwen(folder: Path, *, seed: int = 0) -> Path:
    """The same for Qwen3-ASR in the form for transformers."""
    import torch
    from transformers import (
        Qwen3ASRConfig,
        Qwen3ASRFeatureExtractor,
        Qwen3ASRForConditionalGeneration,
        Qwen3ASRProcessor,
    )

    special = ["<|im_end|>", "<|im_start|>", "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>", "<asr_text>"]
    tokenizer = bytes_tokenizer(
        special,
        extra_special_tokens={
            "audio_token": "<|audio_pad|>",
            "audio_bos_token": "<|audio_start|>",
            "audio_eos_token": "<|audio_end|>",
        },
    )
    Qwen3ASRProcessor(
        Qwen3ASRFeatureExtractor(feature_size=16), tokenizer, chat_template=_QWEN_TEMPLATE
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    audio = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
    model = Qwen3ASRForConditionalGeneration(
        Qwen3ASRConfig(
            text_config={"vocab_size": len(tokenizer), **_TEXT},
            audio_config={
                **audio,
                "num_mel_bins": 16,
                "output_dim": 32,
                "downsample_hidden_size": 8,
                "initializer_range": 0.3,
            },
            audio_token_id=tokenizer.convert_tokens_to_ids("<|audio_pad|>"),
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.eos_token_id,
        )
    )
    _only_printable(model, tokenizer)
    model.save_pretrained(folder)
    return folder
