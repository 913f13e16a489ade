"""Models of FunASR with few, random weights, in folders as its hubs have them; and FunASR's shape without FunASR."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
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
_CHARACTERS = "tokenizer: CharTokenizer\ntokenizer_conf: {unk_symbol: <unk>, split_with_space: true}\n"
_ENCODER = "output_size: 32, attention_heads: 2, linear_units: 32, num_blocks: 2, input_layer: conv2d"
_GATED = (
    "output_size: 32, attention_heads: 2, num_blocks: 2, input_layer: conv2d, cgmlp_linear_units: 32, "
    "cgmlp_conv_kernel: 7, attention_layer_type: rel_selfattn, pos_enc_layer_type: rel_pos, rel_pos_type: latest"
)
_SANM = f"{_SMALL}, pos_enc_class: SinusoidalPositionEncoder, sanm_shfit: 0, selfattention_layer_type: sanm"
_FSMN = "attention_heads: 2, linear_units: 32, num_blocks: 2, att_layer_num: 2, kernel_size: 11, sanm_shfit: 0"


def _attention(model: str, encoder: str, settings: str, decoder: str = "TransformerDecoder") -> str:
    own = _FSMN if decoder == "FsmnDecoder" else "attention_heads: 2, linear_units: 32, num_blocks: 2"
    return (
        f"model: {model}\nmodel_conf: {{ctc_weight: 0.3}}\nencoder: {encoder}\nencoder_conf: {{{settings}}}\n"
        f"decoder: {decoder}\ndecoder_conf: {{{own}}}\n{_CHARACTERS}{_FRONTEND}"
    )


def _paraformer(model: str, *replaced: tuple[str, str]) -> str:
    found = PARAFORMER.replace("model: Paraformer", f"model: {model}")
    for old, new in replaced:
        assert old in found
        found = found.replace(old, new)
    return found


_TIMED = (
    ("CifPredictorV2", "CifPredictorV3"),
    (
        "tail_threshold: 0.45",
        "tail_threshold: 0.45, smooth_factor2: 0.25, noise_threshold2: 0.01, upsample_times: 3, use_cif1_cnn: false, "
        "upsample_type: cnn_blstm",
    ),
)
_CHUNKS = "encoder_att_look_back_factor: [0, 0], decoder_att_look_back_factor: [0, 0]"
_SCAMA = (
    "{attention_dim: 32, attention_heads: 2, linear_units: 32, num_blocks: 2, att_layer_num: 2, kernel_size: 11, "
    "concat_embeds: true}"
)
_CIF = "{idim: 32, threshold: 1.0, l_order: 1, r_order: 1}"
FUN_ASR_NANO = f"""
model: FunASRNano
model_conf: {{lsm_weight: 0.1, length_normalized_loss: true}}
audio_encoder: SenseVoiceEncoderSmall
audio_encoder_conf: {{{_SMALL}, tp_blocks: 1, sanm_shfit: 0, selfattention_layer_type: sanm, freeze: true}}
llm: Qwen3-0.6b
llm_conf: {{hub: hf, freeze: true, llm_dtype: bf16, init_param_path: Qwen3-0.6B, use_lora: false}}
audio_adaptor: Transformer
audio_adaptor_conf: {{downsample_rate: 1, use_low_frame_rate: true, ffn_dim: 32, llm_dim: 32, encoder_dim: 32}}
tokenizer: HuggingfaceTokenizer
tokenizer_conf: {{unk_symbol: <unk>, init_param_path: "${{llm_conf.init_param_path}}"}}
dataset_conf: {{do_think: false}}
{_FRONTEND}"""
CONFIGS = {
    "Paraformer": PARAFORMER,
    "BiCifParaformer": _paraformer("BiCifParaformer", *_TIMED),
    "SeacoParaformer": _paraformer(
        "SeacoParaformer",
        ("model_conf: {", "model_conf: {inner_dim: 32, bias_encoder_type: lstm, NO_BIAS: 3, "),
        *_TIMED,
    )
    + "seaco_decoder: ParaformerSANMDecoder\nseaco_decoder_conf: {attention_heads: 2, linear_units: 32, num_blocks: 2, "
    "kernel_size: 11, sanm_shfit: 0, use_output_layer: false, wo_input_layer: true}\n",
    "ContextualParaformer": _paraformer(
        "ContextualParaformer",
        ("model_conf: {", "model_conf: {inner_dim: 32, bias_encoder_type: lstm, "),
        ("ParaformerSANMDecoder", "ContextualParaformerDecoder"),
    ),
    "EParaformer": _paraformer(
        "EParaformer", ("CifPredictorV2", "PifPredictor"), ("tail_threshold: 0.45", "sigma_heads: 4, bias: 0.0")
    ),
    "Transformer": _attention("Transformer", "TransformerEncoder", _ENCODER),
    "Conformer": _attention("Conformer", "ConformerEncoder", f"{_ENCODER}, cnn_module_kernel: 7"),
    "Branchformer": _attention("Branchformer", "BranchformerEncoder", f"{_GATED}, use_attn: true"),
    "EBranchformer": _attention("EBranchformer", "EBranchformerEncoder", f"{_GATED}, linear_units: 32"),
    "SANM": _attention("SANM", "SANMEncoder", _SANM, "FsmnDecoder"),
    "UniASR": f"""
model: UniASR
model_conf: {{ctc_weight: 0.0, predictor_weight: 1.0, ctc2_weight: 0.0, predictor2_weight: 1.0}}
encoder: SANMEncoderChunkOpt
encoder_conf: {{{_SANM}, chunk_size: [20, 60], stride: [10, 40], pad_left: [5, 10], {_CHUNKS}}}
decoder: FsmnDecoderSCAMAOpt
decoder_conf: {_SCAMA}
predictor: CifPredictorV2
predictor_conf: {_CIF}
encoder2: SANMEncoderChunkOpt
encoder2_conf: {{{_SANM}, chunk_size: [45, 70], stride: [35, 50], pad_left: [5, 10], {_CHUNKS}}}
decoder2: FsmnDecoderSCAMAOpt
decoder2_conf: {_SCAMA}
predictor2: CifPredictorV2
predictor2_conf: {_CIF}
stride_conv: stride_conv1d
stride_conv_conf: {{kernel_size: 2, stride: 2, pad: [0, 1]}}
{_CHARACTERS}{_FRONTEND}""",
    "SenseVoiceSmall": SENSE_VOICE,
    "FunASRNano": FUN_ASR_NANO,
}
SENSE_VOICE_TAGS = ["<|zh|>", "<|en|>", "<|NEUTRAL|>", "<|Speech|>", "<|withitn|>", "<|woitn|>"]


def save_tiny_funasr(folder: Path, config: str, *, seed: int = 0) -> Path:
    """The folder of a model. Needs FunASR."""
    import torch
    import yaml
    from funasr import AutoModel

    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(config)
    if settings["tokenizer"] == "HuggingfaceTokenizer":
        language_model = str(_save_language_model(folder / settings["llm_conf"]["init_param_path"]))
        settings["llm_conf"]["init_param_path"] = settings["tokenizer_conf"]["init_param_path"] = language_model
    elif settings["tokenizer"] == "CharTokenizer":
        (folder / "tokens.json").write_text(json.dumps(TOKENS, ensure_ascii=False), encoding="utf-8")
        settings["tokenizer_conf"]["token_list"] = str(folder / "tokens.json")
    else:
        settings["tokenizer_conf"]["bpemodel"] = str(_sentence_pieces(folder / "bpe.model"))
    torch.manual_seed(seed)
    model = AutoModel.build_model(**settings, device="cpu", seed=seed)[0].float()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    torch.save({"state_dict": model.state_dict()}, folder / "model.pt")
    return folder


def _save_language_model(folder: Path) -> Path:
    """Configuration and tokenizer: the weights are in the checkpoint of the whole model."""
    from transformers import Qwen3Config

    from .speech_models_for_tests import bytes_tokenizer

    tokenizer = bytes_tokenizer(["<|im_end|>", "<|im_start|>"])
    tokenizer.save_pretrained(folder)
    Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    ).save_pretrained(folder)
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
        self.model, self.kwargs = SimpleNamespace(), kwargs

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
