"""A Moonshine with few, random weights and a vocabulary of letters, made without a network."""

from __future__ import annotations

from pathlib import Path

LETTERS = "abcdefghijklmnopqrstuvwxyz"
START, END = 1, 2


def save_tiny_moonshine(folder: Path, *, seed: int = 0) -> Path:
    """Model and processor in `folder`, as transformers saves them."""
    import torch
    from tokenizers import Tokenizer, decoders, models
    from transformers import (
        MoonshineConfig,
        MoonshineForConditionalGeneration,
        PreTrainedTokenizerFast,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2Processor,
    )

    vocabulary = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", *LETTERS])}
    letters = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    letters.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=letters, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=False)
    Wav2Vec2Processor(extractor, tokenizer).save_pretrained(folder)
    config = MoonshineConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=32,
        encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=1,
        encoder_num_attention_heads=2,
        decoder_num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=START,
        decoder_start_token_id=START,
        eos_token_id=END,
        pad_token_id=END,
    )
    torch.manual_seed(seed)
    model = MoonshineForConditionalGeneration(config)
    with torch.no_grad():
        for weights in model.parameters():
            # Otherwise all tokens are nearly as likely.
            if weights.ndim > 1:
                weights.normal_(0, 1.5 / weights[0].numel() ** 0.5)
    model.save_pretrained(folder)
    return folder
