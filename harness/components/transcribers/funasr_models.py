"""The model classes of FunASR: which are run, how each is asked, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ....errors import ModelError
from ...protocols import Setting

Batches = Literal["any", "one by default", "one"]
Half = Literal["weights", "language model", "none"]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A short name's repositories on Hugging Face ("" for none) and ModelScope, and its `languages` where it tells."""

    hf: str
    ms: str
    languages: tuple[str, ...] = ()


_IIC = "iic/speech_"
_NANO = "FunAudioLLM/Fun-ASR-Nano-2512"
_MLT_NANO = "FunAudioLLM/Fun-ASR-MLT-Nano-2512"
KNOWN_MODELS: Mapping[str, KnownModel] = MappingProxyType(
    {
        # SeACo-Paraformer on ModelScope; what Hugging Face has under this name, the spec tells (architecture).
        "paraformer-zh": KnownModel(
            "funasr/paraformer-zh",
            f"{_IIC}seaco_paraformer_large_asr_nat-zh-cn-16k-common-vocab8404-pytorch",
            ("zh", "en"),
        ),
        # The first Paraformer-large, without hot words: the default of SQuTR's released code.
        "paraformer-large": KnownModel(
            "", f"{_IIC}paraformer-large_asr_nat-zh-cn-16k-common-vocab8404-pytorch", ("zh", "en")
        ),
        "paraformer-en": KnownModel(
            "funasr/paraformer-en", f"{_IIC}paraformer-large-vad-punc_asr_nat-en-16k-common-vocab10020", ("en",)
        ),
        "sensevoice-small": KnownModel("FunAudioLLM/SenseVoiceSmall", "iic/SenseVoiceSmall"),
        "fun-asr-nano": KnownModel(_NANO, _NANO),
        "fun-asr-mlt-nano": KnownModel(_MLT_NANO, _MLT_NANO, ("zh", "en", "ja", "yue", "ko")),
    }
)


def short_name(model: str) -> str:
    """The name in `KNOWN_MODELS` of a name or repository, else the model as it is.

    >>> short_name("iic/SenseVoiceSmall"), short_name("Fun-ASR-Nano"), short_name("me/mine")
    ('sensevoice-small', 'fun-asr-nano', 'me/mine')
    """
    for name, known in KNOWN_MODELS.items():
        if model.casefold() in (name, known.hf.casefold(), known.ms.casefold()):
            return name
    return model


@dataclass(frozen=True, slots=True)
class Family:
    """How models of a class are asked.

    `languages` is what `generate` takes by code, `auto` what it takes where none is forced ("" for nothing at all);
    `itn` the option for digits and punctuation as written, `itn_default` what FunASR takes if not told; `options` what
    else is always given. `batches`: "one by default" where a clip's text depends on those beside it, "one" where a
    batch is decoded by another algorithm, or not at all. `half`: what float16 and bfloat16 apply to. `unused`:
    patterns of weights that the class leaves by design.
    """

    batches: Batches = "any"
    half: Half = "weights"
    languages: Mapping[str, str] = field(default_factory=dict, hash=False)
    auto: str = ""
    itn: str = ""
    itn_default: bool = False
    options: Mapping[str, Setting] = field(default_factory=dict, hash=False)
    unused: tuple[str, ...] = ()


# The predictor of a Paraformer looks one frame ahead, and beyond a clip's end it sees the padding of its batch.
_PARAFORMER = Family(batches="one by default", half="none")
# In a batch these take the likeliest token of each frame; alone they search a beam of 10 with both heads.
_ATTENTION = Family(batches="one", half="none", options={"beam_size": 10, "decoding_ctc_weight": 0.5})
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        **dict.fromkeys(
            ("BiCifParaformer", "ContextualParaformer", "EParaformer", "Paraformer", "SeacoParaformer"), _PARAFORMER
        ),
        **dict.fromkeys(("Branchformer", "Conformer", "EBranchformer", "SANM", "Transformer"), _ATTENTION),
        "UniASR": Family(batches="one", half="none", options={"beam_size": 5, "decoding_model": "normal"}),
        "SenseVoiceSmall": Family(
            half="none", languages={code: code for code in ("zh", "en", "yue", "ja", "ko")}, auto="auto", itn="use_itn"
        ),
        "FunASRNano": Family(
            half="language model",
            languages={"zh": "中文", "en": "英文", "ja": "日文", "yue": "粤语", "ko": "韩文"},
            itn="itn",
            itn_default=True,
            # Its language model may come with settings for sampling.
            options={"llm_kwargs": {"do_sample": False, "num_beams": 1}},
            # The CTC head times words; the text is the language model's.
            unused=(r"ctc(_decoder)?\.",),
        ),
    }
)

_STREAMING = "it decodes a stream in chunks"
_OTHER_TASK = "it does not transcribe"
_NEEDS_MORE = "it needs text or a prompt beside the audio"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ParaformerStreaming", "SCAMA"), _STREAMING),
        **dict.fromkeys(("BAT", "Paraformer_v2_community", "Transducer"), "it was never tried here"),
        **dict.fromkeys(
            (
                "CAMPPlus", "CTTransformer", "CTTransformerStreaming", "ERes2NetV2", "Emotion2vec", "FsmnKWS",
                "FsmnKWSConvert", "FsmnKWSMT", "FsmnKWSMTConvert", "FsmnVADStreaming", "MonotonicAligner",
                "OpenAIWhisperLIDModel", "SanmKWS", "SanmKWSStreaming", "SileroVad",
            ),
            _OTHER_TASK,
        ),
        **dict.fromkeys(
            ("LCBNet", "LLMASR", "LLMASR2", "LLMASR3", "LLMASR4", "LLMASRNAR", "LLMASRNARPrompt"), _NEEDS_MORE
        ),
        "CTC": "FunASR's own code of it fails on the encoders that FunASR has",
        "GLMASR": "the backend 'glm-asr' runs it",
        "MOSS-Transcribe-Diarize": "it writes who spoke when, in tags",
        "OpenAIWhisperModel": "the backends of Whisper run it",
        "Qwen3ASR": "the backend 'qwen-asr' runs it",
        "QwenAudioChatWarp": "it answers questions: give it as an answerer",
        "QwenAudioWarp": "its code comes with its weights",
        "WhisperWarp": "the backends of Whisper run it",
    }
)  # fmt: skip


def family(architecture: str, model: str) -> Family:
    """How models of a class of FunASR are asked. Raises `ModelError` for a class that is not run here."""
    known = FAMILIES.get(architecture)
    if known is None:
        why = REFUSED.get(architecture, "it is not known here")
        raise ModelError(
            f"the model {model} is a {architecture} of FunASR, which this backend does not run: {why}.",
            hint=f"Known: {', '.join(sorted(FAMILIES))}. Write a transcriber of your own for another "
            "(class:<module>:<class>).",
        )
    return known
