"""Speech-to-text models of transformers' own classes with few, random weights, made without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .speech_models_for_tests import bytes_tokenizer

_MARKS = ("<pad>", "</s>", "<unk>")
_LLM = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
}
_FAST_CONFORMER = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "conv_kernel_size": 5,
    "subsampling_conv_channels": 8,
    "num_mel_bins": 80,
    "dropout": 0.0,
}
_WAVES = {
    "conv_dim": (16, 16),
    "conv_stride": (10, 16),
    "conv_kernel": (20, 32),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
}
# As the prompts of Canary and Cohere's model are.
_TURN = (
    "{% for m in messages %}{% for p in m['content'] %}{% if p['type'] == 'text' %}<|startofcontext|>"
    "<|startoftranscript|><|{{ p['source_language'] }}|><|{{ p['target_language'] }}|>"
    "{{ '<|pnc|>' if p['punctuation'] else '<|nopnc|>' }}{% endif %}{% endfor %}{% endfor %}"
)
_CONTEXT = ("<|startofcontext|>", "<|startoftranscript|>", "<|pnc|>", "<|nopnc|>")
_CHAT = (
    "{% for m in messages %}<|user|>{% for p in m['content'] %}{% if p['type'] == 'audio' %}<|audio|>"
    "{% elif p['type'] == 'language' %}<|lang:{{ p['language'] }}|>{% endif %}{% endfor %}<|assistant|>{% endfor %}"
)
Made = tuple[Any, Any]
"""A model and its processor."""


def save_tiny(folder: Path, kind: str) -> Path:
    """Model and processor of a model type in `folder`, as transformers saves them."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model, processor = _MAKERS[kind](folder)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            # Otherwise all tokens are nearly as likely.
            if weights.ndim > 1 and "positions" not in name:
                weights.normal_(0, 1.5 / weights[0].numel() ** 0.5)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _tokens(tokenizer: Any, **more: int) -> dict[str, int]:
    end = tokenizer.convert_tokens_to_ids("</s>")
    return {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": end,
        "eos_token_id": end,
        **more,
    }


def _tokenizer(*special: str, **named: str) -> Any:
    tokenizer = bytes_tokenizer([*_MARKS, *special], unk_token="<unk>", **named)
    tokenizer.eos_token = "</s>"
    return tokenizer


def _canary(folder: Path) -> Made:
    from transformers import CanaryConfig, CanaryForConditionalGeneration, CanaryProcessor, ParakeetFeatureExtractor

    tokenizer = _tokenizer(*_CONTEXT, "<|en|>", "<|es|>", "<|de|>")
    start = tokenizer.convert_tokens_to_ids("<|startofcontext|>")
    tokens = _tokens(tokenizer)
    config = CanaryConfig(
        encoder_config={"model_type": "parakeet_encoder", **_FAST_CONFORMER},
        decoder_config={**_LLM, **tokens},
        decoder_start_token_id=start,
        **tokens,
    )
    processor = CanaryProcessor(ParakeetFeatureExtractor(feature_size=80), tokenizer, chat_template=_TURN)
    return CanaryForConditionalGeneration(config), processor


def _cohere(folder: Path) -> Made:
    from transformers import (
        CohereAsrConfig,
        CohereAsrFeatureExtractor,
        CohereAsrForConditionalGeneration,
        CohereAsrProcessor,
    )

    more = ("▁", "<|emo:undefined|>", "<|noitn|>", "<|notimestamp|>", "<|nodiarize|>")
    tokenizer = _tokenizer(*_CONTEXT, *more, "<|en|>", "<|es|>", "<|zh|>")
    config = CohereAsrConfig(
        encoder_config={"model_type": "parakeet_encoder", **_FAST_CONFORMER},
        decoder_start_token_id=tokenizer.convert_tokens_to_ids("▁"),
        **_LLM,
        **_tokens(tokenizer),
    )
    extractor = CohereAsrFeatureExtractor(
        feature_size=80, max_audio_clip_s=3.0, overlap_chunk_second=0.5, min_energy_window_samples=800
    )
    return CohereAsrForConditionalGeneration(config), CohereAsrProcessor(extractor, tokenizer)


def _omniasr(folder: Path) -> Made:
    from transformers import OmniASRConfig, OmniASRFeatureExtractor, OmniASRForConditionalGeneration, OmniASRProcessor

    tokenizer = _tokenizer("<|audio|>", "<|user|>", "<|assistant|>", "<|lang:eng_latn|>", "<|lang:spa_latn|>")
    small = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
    waves = {"conv_kernel": _WAVES["conv_kernel"], "conv_stride": _WAVES["conv_stride"]}
    config = OmniASRConfig(
        audio_config={"model_type": "omniasr_audio", **small, **_WAVES},
        text_config={"model_type": "llama", **_LLM, **_tokens(tokenizer)},
        audio_token_id=tokenizer.convert_tokens_to_ids("<|audio|>"),
        bos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    processor = OmniASRProcessor(
        OmniASRFeatureExtractor(), tokenizer, chat_template=_CHAT, audio_token="<|audio|>", **waves
    )
    return OmniASRForConditionalGeneration(config), processor


def _moonshine_streaming(folder: Path) -> Made:
    from transformers import (
        MoonshineStreamingConfig,
        MoonshineStreamingForConditionalGeneration,
        MoonshineStreamingProcessor,
        Wav2Vec2FeatureExtractor,
    )

    tokenizer = _tokenizer()
    encoder = {**_LLM, "sliding_windows": [[16, 4]]}
    config = MoonshineStreamingConfig(
        encoder_config=encoder, decoder_start_token_id=tokenizer.eos_token_id, **_LLM, **_tokens(tokenizer)
    )
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=False)
    return MoonshineStreamingForConditionalGeneration(config), MoonshineStreamingProcessor(extractor, tokenizer)


def _seamless(version: str) -> Callable[[Path], Made]:
    def make(folder: Path) -> Made:
        import transformers

        tokenizer = _tokenizer("__eng__", "__spa__", "__cmn__")
        tokens = _tokens(tokenizer)
        config = getattr(transformers, f"SeamlessM4T{version}Config")(
            hidden_size=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            speech_encoder_layers=1,
            speech_encoder_attention_heads=2,
            speech_encoder_intermediate_size=32,
            max_position_embeddings=256,
            decoder_start_token_id=tokenizer.eos_token_id,
            **tokens,
        )
        model = getattr(transformers, f"SeamlessM4T{version}ForSpeechToText")(config)
        # Else transformers reads none of these names of languages back.
        model.generation_config._from_model_config = False
        model.generation_config.text_decoder_lang_to_code_id = {
            name: tokenizer.convert_tokens_to_ids(f"__{name}__") for name in ("eng", "spa", "cmn")
        }
        extractor = transformers.SeamlessM4TFeatureExtractor()
        return model, transformers.SeamlessM4TProcessor(extractor, tokenizer)

    return make


def _speech_to_text(folder: Path) -> Made:
    import sentencepiece
    from transformers import (
        Speech2TextConfig,
        Speech2TextFeatureExtractor,
        Speech2TextForConditionalGeneration,
        Speech2TextProcessor,
        Speech2TextTokenizer,
    )

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["hello world what is a bond"] * 20),
        model_prefix=str(folder / "sentencepiece.bpe"),
        vocab_size=60,
        user_defined_symbols=[
            "<pad>",
            *(f"<lang:{code}>" for code in ("de", "es", "fr", "it", "nl", "pt", "ro", "ru")),
        ],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    vocabulary = {pieces.id_to_piece(i): i for i in range(pieces.vocab_size())}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = Speech2TextTokenizer(
        str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"), lang_codes="mustc", tgt_lang="de"
    )
    config = Speech2TextConfig(
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        d_model=32,
        conv_channels=16,
        max_target_positions=256,
        decoder_start_token_id=tokenizer.eos_token_id,
        **_tokens(tokenizer),
    )
    processor = Speech2TextProcessor(Speech2TextFeatureExtractor(), tokenizer)
    return Speech2TextForConditionalGeneration(config), processor


def _speecht5(folder: Path) -> Made:
    from transformers import SpeechT5Config, SpeechT5FeatureExtractor, SpeechT5ForSpeechToText, SpeechT5Processor

    tokenizer = _tokenizer()
    config = SpeechT5Config(
        hidden_size=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        max_text_positions=256,
        decoder_start_token_id=tokenizer.eos_token_id,
        **_WAVES,
        **_tokens(tokenizer),
    )
    return SpeechT5ForSpeechToText(config), SpeechT5Processor(SpeechT5FeatureExtractor(), tokenizer)


def _speech_encoder_decoder(folder: Path) -> Made:
    from transformers import (
        MBartConfig,
        MBartForCausalLM,
        SpeechEncoderDecoderModel,
        Wav2Vec2Config,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2Model,
        Wav2Vec2Processor,
    )

    tokenizer = _tokenizer()
    encoder = Wav2Vec2Config(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_feat_extract_layers=2,
        **_WAVES,
    )
    decoder = MBartConfig(
        d_model=32,
        decoder_layers=1,
        decoder_ffn_dim=32,
        decoder_attention_heads=2,
        max_position_embeddings=256,
        is_decoder=True,
        add_cross_attention=True,
        **_tokens(tokenizer),
    )
    model = SpeechEncoderDecoderModel(encoder=Wav2Vec2Model(encoder), decoder=MBartForCausalLM(decoder))
    for name in ("pad_token_id", "eos_token_id"):
        setattr(model.config, name, getattr(tokenizer, name))
        setattr(model.generation_config, name, getattr(tokenizer, name))
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = tokenizer.eos_token_id
    return model, Wav2Vec2Processor(Wav2Vec2FeatureExtractor(return_attention_mask=True), tokenizer)


_MAKERS: Mapping[str, Callable[[Path], Made]] = {
    "canary": _canary,
    "cohere_asr": _cohere,
    "moonshine_streaming": _moonshine_streaming,
    "omniasr": _omniasr,
    "seamless_m4t": _seamless(""),
    "seamless_m4t_v2": _seamless("v2"),
    "speech-encoder-decoder": _speech_encoder_decoder,
    "speech_to_text": _speech_to_text,
    "speecht5": _speecht5,
}
KINDS = tuple(_MAKERS)
