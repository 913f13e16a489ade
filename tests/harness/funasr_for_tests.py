"""Models of FunASR with few, random weights, in folders as its hubs have them; and FunASR's shape without FunASR."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

TOKENS = ["<blank>", "<s>", "</s>", *"今天气很好什么是债券", "hello", "wor@@", "ld", "<unk>"]

_FRONTEND = """
frontend: WavFrontend
frontend_conf: {fs: 16000, window: hamming, n_mels: 80, frame_length: 25, frame_shift: 10, lfr_m: 7, lfr_n: 6}
"""
_SMALL = "output_size: 32, attention_heads: 2, linear_units: 32, num_blocks: 2, input_layer: pe, kernel_size: 11"
PARAFORMER = f"""
model: Paraformer
model_conf: {{ctc_weight: 0.0, predictor_weight: 1.0, predictor_bias: 1, sampling_ratio: 0.75}}
encoder: SANMEncoder
encoder_conf: {{{_SMALL}, pos_enc_class: SinusoidalPositionEncoder, sanm_shfit: 0, selfattention_layer_type: sanm}}
decoder: ParaformerSANMDecoder
decoder_conf: {{attention_heads: 2, linear_units: 32, num_blocks: 2, att_layer_num: 2, kernel_size: 11, sanm_shfit: 0}}
predictor: CifPredictorV2
predictor_conf: {{idim: 32, threshold: 1.0, l_order: 1, r_order: 1, tail_threshold: 0.45}}
tokenizer: CharTokenizer
tokenizer_conf: {{unk_symbol: <unk>, split_with_space: true}}
{_FRONTEND}"""
SENSE_VOICE = f"""
model: SenseVoiceSmall
model_conf: {{length_normalized_loss: true, sos: 1, eos: 2, ignore_id: -1}}
encoder: SenseVoiceEncoderSmall
encoder_conf: {{{_SMALL}, tp_blocks: 1, sanm_shfit: 0, selfattention_layer_type: sanm}}
tokenizer: SentencepiecesTokenizer
tokenizer_conf: {{bpemodel: null, unk_symbol: <unk>, split_with_space: true}}
{_FRONTEND}"""
SENSE_VOICE_TAGS = ["<|zh|>", "<|en|>", "<|NEUTRAL|>", "<|Speech|>", "<|withitn|>", "<|woitn|>"]


def save_tiny_funasr(folder: Path, config: str, *, seed: int = 0) -> Path:
    """The folder of a model. Needs FunASR."""
    import torch
    import yaml
    from funasr import AutoModel

    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(config)
    if settings["tokenizer"] == "CharTokenizer":
        (folder / "tokens.json").write_text(json.dumps(TOKENS, ensure_ascii=False), encoding="utf-8")
        settings["tokenizer_conf"]["token_list"] = str(folder / "tokens.json")
    else:
        settings["tokenizer_conf"]["bpemodel"] = str(_sentence_pieces(folder / "bpe.model"))
    torch.manual_seed(seed)
    model, _ = AutoModel.build_model(**settings, device="cpu", seed=seed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    torch.save({"state_dict": model.state_dict()}, folder / "model.pt")
    return folder


def _sentence_pieces(file: Path) -> Path:
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["hello world what is a bond", "今 天 天 气 很 好"] * 20),
        model_prefix=str(file.with_suffix("")),
        vocab_size=50,
        user_defined_symbols=SENSE_VOICE_TAGS,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return file


class FakeAutoModel:
    """`funasr.AutoModel` 1.4 as far as it is used: records what it is given, answers by rule."""

    made: ClassVar[list[dict[str, Any]]]
    asked: ClassVar[list[dict[str, Any]]]
    answer: ClassVar[Any] = None

    def __init__(self, **kwargs: Any) -> None:
        print("funasr version: 1.4.16.")  # as the real one does
        self.made.append(kwargs)

    def generate(
        self, input: Any, input_len: Any = None, progress_callback: Any = None, **cfg: Any
    ) -> list[dict[str, Any]]:
        self.asked.append({"sizes": [len(sound) for sound in input], **cfg})
        if self.answer is not None:
            return type(self).answer(input)
        return [{"key": f"rand_key_{i}", "text": f"clip of {len(sound)}"} for i, sound in enumerate(input)]


def install_fake_funasr(monkeypatch: pytest.MonkeyPatch) -> type[FakeAutoModel]:
    """Puts a module of FunASR's shape where it is imported from."""

    class Fresh(FakeAutoModel):
        made: ClassVar[list[dict[str, Any]]] = []
        asked: ClassVar[list[dict[str, Any]]] = []

    module = ModuleType("funasr")
    module.AutoModel = Fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "funasr", module)
    return Fresh


def install_fake_distribution(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, version: str) -> None:
    """Metadata of a package that is not installed."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(folder))
