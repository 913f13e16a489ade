"""A Whisper with few, random weights and a vocabulary of letters, made without a network."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

LANGUAGES = ("en", "zh", "es")


def speechlike(seconds: float, seed: int) -> np.ndarray:
    """(T,) float32 at 16 kHz: harmonics under a slow envelope, with a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * 16_000)) / 16_000
    tone = sum(np.sin(2 * np.pi * k * (110 + 40 * seed) * t) / k for k in range(1, 6))
    sound = 0.2 * tone * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t)) + 0.01 * rng.standard_normal(t.size)
    return sound.astype(np.float32)


def save_tiny_whisper(folder: Path, *, multilingual: bool = True, seed: int = 0) -> Path:
    """Model, processor and generation settings in `folder`, as transformers saves them."""
    import torch
    from transformers import (
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperProcessor,
        WhisperTokenizer,
    )
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    folder.mkdir(parents=True, exist_ok=True)
    # Byte-level vocabulary: one token per byte, in the order in which GPT-2 writes bytes (printable ASCII first).
    letters = list(bytes_to_unicode().values())
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    special = ["<|endoftext|>", "<|startoftranscript|>"]
    special += [f"<|{code}|>" for code in LANGUAGES]
    special += [
        "<|translate|>",
        "<|transcribe|>",
        "<|startoflm|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
    ]
    ids = {token: len(letters) + i for i, token in enumerate(special)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary | {"<|endoftext|>": ids["<|endoftext|>"]}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = WhisperTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer.add_special_tokens({"additional_special_tokens": special[1:]})
    timestamps = [f"<|{i * 0.02:.2f}|>" for i in range(1501)]
    tokenizer.add_tokens(timestamps)
    assert tokenizer.convert_tokens_to_ids("<|notimestamps|>") == ids["<|notimestamps|>"]
    WhisperProcessor(WhisperFeatureExtractor(feature_size=80), tokenizer).save_pretrained(folder)

    torch.manual_seed(seed)
    config = WhisperConfig(
        vocab_size=len(letters) + len(special) + len(timestamps),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"],
        decoder_start_token_id=ids["<|startoftranscript|>"],
        init_std=0.6,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        rows = model.get_output_embeddings().weight  # also what the tokens are read with
        rows[94:256] = 0  # bytes that are no printable ASCII: never the likeliest, so that texts can be compared
        rows[257:] *= 0.4
    settings = model.generation_config
    settings._from_model_config = False  # otherwise it is derived again, without what follows
    settings.is_multilingual = multilingual
    settings.no_timestamps_token_id = ids["<|notimestamps|>"]
    settings.max_initial_timestamp_index = 50
    settings.prev_sot_token_id = ids["<|startofprev|>"]
    # What faster-whisper suppresses (symbols), and all that is no printable ASCII.
    symbols = [i for i, letter in enumerate(letters[:94]) if letter in '"#()*+/:;<=>@[\\]^_`{|}~']
    settings.suppress_tokens = [*symbols, *range(94, 256), *range(257, config.vocab_size)]
    if multilingual:
        settings.lang_to_id = {f"<|{code}|>": ids[f"<|{code}|>"] for code in LANGUAGES}
        settings.task_to_id = {task: ids[f"<|{task}|>"] for task in ("translate", "transcribe")}
    model.save_pretrained(folder)
    return folder


def save_tiny_ctranslate2(source: Path, folder: Path) -> Path:
    """The same model in CTranslate2's format."""
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(source), copy_files=["tokenizer.json"]).convert(str(folder))
    return folder
