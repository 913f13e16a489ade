"""CTC models with few, random weights and a vocabulary of letters, made without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxyz"

_WAVES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_dim": (16, 16),
    "conv_stride": (10, 16),
    "conv_kernel": (20, 32),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "feat_extract_norm": "layer",
    "do_stable_layer_norm": True,
    "conv_bias": True,
}
_MEL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_kernel_size": 5,
    "dropout": 0.0,
}
_SPECIFIC: dict[str, dict[str, Any]] = {
    "sew": {"squeeze_factor": 2},
    "data2vec-audio": {"num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5},
    "wav2vec2-bert": {"feature_projection_input_dim": 160, "output_hidden_size": 32, "conv_depthwise_kernel_size": 5},
    "unispeech": {"num_codevectors_per_group": 4, "codevector_dim": 8},
    "unispeech-sat": {"num_codevectors_per_group": 4, "codevector_dim": 8},
}


def save_tiny_ctc(folder: Path, kind: str, *, mask: bool = True, seed: int = 0, **settings: Any) -> Path:
    """Model, feature extractor and tokenizer of a model type in `folder`, as transformers saves them.

    `mask` is whether the feature extractor gives an attention mask.
    """
    import torch
    from transformers import MODEL_FOR_CTC_MAPPING, AutoConfig

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(folder, kind)
    if kind in ("parakeet_ctc", "lasr_ctc"):
        encoder = {**_MEL, "num_mel_bins": 80, "subsampling_conv_channels": 8, "num_key_value_heads": 2, **settings}
        options: dict[str, Any] = {"encoder_config": encoder}
    else:
        options = {**_WAVES, **_SPECIFIC.get(kind, {}), **settings}
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, ctc_loss_reduction="mean", **options
    )
    torch.manual_seed(seed)
    model = MODEL_FOR_CTC_MAPPING[type(config)](config).eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            # Otherwise every frame says the same.
            if weights.ndim > 1 and "embed_positions" not in name:
                weights.normal_(0, 1.5 / weights[0].numel() ** 0.5)
    model.save_pretrained(folder)
    _extractor(kind, mask).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _extractor(kind: str, mask: bool) -> Any:
    from transformers import (
        LasrFeatureExtractor,
        ParakeetFeatureExtractor,
        SeamlessM4TFeatureExtractor,
        Wav2Vec2FeatureExtractor,
    )

    if kind == "parakeet_ctc":
        return ParakeetFeatureExtractor(feature_size=80)
    if kind == "lasr_ctc":
        return LasrFeatureExtractor(feature_size=80)
    if kind == "wav2vec2-bert":
        return SeamlessM4TFeatureExtractor(feature_size=80, num_mel_bins=80, sampling_rate=16_000, padding_value=0.0)
    return Wav2Vec2FeatureExtractor(return_attention_mask=mask)


def _tokenizer(folder: Path, kind: str) -> Any:
    from tokenizers import Tokenizer, models
    from transformers import ParakeetTokenizer, Wav2Vec2CTCTokenizer

    if kind in ("parakeet_ctc", "lasr_ctc"):
        vocabulary = {token: i for i, token in enumerate(["<unk>", *LETTERS, "<pad>"])}
        words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        return ParakeetTokenizer(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>")
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", *LETTERS])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    return Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))


def save_tiny_adapters(folder: Path, languages: tuple[str, ...]) -> Path:
    """A wav2vec2 with an adapter and a vocabulary for each language, in the layout of MMS."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCTC, Wav2Vec2CTCTokenizer

    save_tiny_ctc(folder, "wav2vec2", adapter_attn_dim=4)
    first = {token: i for i, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|"])}
    letters = {language: LETTERS[n : n + 20] if n % 2 else LETTERS[n:].upper() for n, language in enumerate(languages)}
    nested = {
        language: first | {letter: len(first) + i for i, letter in enumerate(known)}
        for language, known in letters.items()
    }
    (folder / "vocab.json").write_text(json.dumps(nested))
    Wav2Vec2CTCTokenizer(str(folder / "vocab.json"), target_lang=languages[0]).save_pretrained(folder)
    model = AutoModelForCTC.from_pretrained(folder)
    torch.manual_seed(1)
    for language in languages:
        adapter = {name: torch.randn_like(weights) for name, weights in model._get_adapters().items()}
        size = len(nested[language])
        adapter["lm_head.weight"], adapter["lm_head.bias"] = torch.randn(size, 32), torch.zeros(size)
        save_file(adapter, folder / f"adapter.{language}.safetensors")
    return folder
