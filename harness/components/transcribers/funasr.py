"""FunASR: Paraformer (arXiv 2206.08317), SenseVoice (arXiv 2407.04051), Fun-ASR-Nano (arXiv 2509.12508)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ....errors import ModelError, UsageError, missing_extra
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import BatchSize, require_positive
from ..torch_models import AutoBatch, imported_torch
from ..weights import FoundWeights, local_revision
from .common import SAMPLE_RATE, Decoded, minor_version, primary_code, require_language, transcribe_batches
from .torch_transcriber import TorchTranscriber

Hub = Literal["hf", "ms"]

_AUTO_BATCH = 32
_TAG = re.compile(r"<\|[^|<>]*\|>")
_HAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u3000-\u303f\uff00-\uffef"
_BETWEEN_HAN = re.compile(rf"(?<=[{_HAN}])\s+(?=[{_HAN}])")
_ARCHITECTURE = re.compile(r"^model:\s*['\"]?([\w.-]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Known:
    hf: str
    ms: str
    languages: tuple[str, ...] = ()


_ZH_PARAFORMER = "iic/speech_seaco_paraformer_large_asr_nat-zh-cn-16k-common-vocab8404-pytorch"
_EN_PARAFORMER = "iic/speech_paraformer-large-vad-punc_asr_nat-en-16k-common-vocab10020"
KNOWN_MODELS: Mapping[str, _Known] = {
    "paraformer-zh": _Known("funasr/paraformer-zh", _ZH_PARAFORMER, ("zh", "en")),
    "paraformer-en": _Known("funasr/paraformer-en", _EN_PARAFORMER, ("en",)),
    "sensevoice-small": _Known("FunAudioLLM/SenseVoiceSmall", "iic/SenseVoiceSmall"),
    "fun-asr-nano": _Known("FunAudioLLM/Fun-ASR-Nano-2512", "FunAudioLLM/Fun-ASR-Nano-2512"),
    "fun-asr-mlt-nano": _Known(
        "FunAudioLLM/Fun-ASR-MLT-Nano-2512", "FunAudioLLM/Fun-ASR-MLT-Nano-2512", ("zh", "en", "ja", "yue", "ko")
    ),
}


@dataclass(frozen=True, slots=True)
class _Family:
    """How models of an architecture are asked: `languages` are what `generate` takes; `alone`: one clip a batch."""

    languages: Mapping[str, str]
    options: Mapping[str, Setting]
    alone: bool


_NANO = {"zh": "中文", "en": "英文", "ja": "日文", "yue": "粤语", "ko": "韩文"}


def _family(architecture: str, *, itn: bool, max_length: int) -> _Family:
    if architecture == "SenseVoiceSmall":
        return _Family({code: code for code in ("zh", "en", "yue", "ja", "ko")}, {"use_itn": itn}, alone=False)
    if architecture == "FunASRNano":
        # Its language model comes with settings for sampling.
        greedy: dict[str, Setting] = {"do_sample": False, "num_beams": 1}
        return _Family(_NANO, {"itn": itn, "max_length": max_length, "llm_kwargs": greedy}, alone=False)
    # The predictor of a Paraformer looks one frame ahead, and beyond a clip's end it sees the padding of its batch.
    return _Family({}, {}, alone=True)


class FunASRTranscriber(TorchTranscriber):
    """A model of FunASR.

    `model` is a name of `KNOWN_MODELS`, a folder, or a repository on `hub`: "hf" (Hugging Face) or "ms" (ModelScope,
    identified by the sha256 of its files). `device`, `dtype` and `threads` are those of `TorchOptions`. `batch_size`
    "auto" is 1 for Paraformer, whose last characters depend on the clips beside it (then it is in the spec), else 32.

    `itn` asks SenseVoice and Fun-ASR for digits and punctuation as written. `max_length` caps the new tokens of Fun-ASR
    (published: 512); FunASR does not tell when it cut a text. `languages` says what an unlisted model knows.

    Dither is off, or else a transcript would depend on the clips before it. SenseVoice's tags are removed, and blanks
    between Chinese or Japanese characters. With `trust_remote_code`, a `model.py` beside the weights is run, and its
    requirements are installed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        hub: Hub = "hf",
        device: str = "auto",
        dtype: str = "float32",
        threads: int = 0,
        batch_size: int | AutoBatch = "auto",
        itn: bool = True,
        max_length: int = 512,
        languages: Sequence[str] = (),
        trust_remote_code: bool = False,
    ) -> None:
        if hub not in ("hf", "ms"):
            raise UsageError(f"unknown hub {hub!r}.", hint="Known: hf, ms.")
        require_positive(max_length=max_length)
        self._known = KNOWN_MODELS.get(str(model).lower())
        super().__init__(
            getattr(self._known, hub) if self._known is not None else model,
            batch_size=batch_size,
            revision=revision,
            device=device,
            dtype=dtype,
            threads=threads,
            trust_remote_code=trust_remote_code,
        )
        self._hub: Hub = hub
        self._itn = itn
        self._max_length = max_length
        self._told_languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            **self._family.options,
            "architecture": self._architecture,
            **({"batch_size": self._first_batch} if self._family.alone else {}),
            "dither": 0.0,
            "features": _features(),
            "funasr": minor_version("funasr", "funasr", "funasr"),
            "forced_languages": sorted(self._family.languages),
            "text": "without tags and without blanks between Han",
        }
        return self._spec("funasr", settings, transformers=False)

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        code = require_language(language, self._languages, str(self._requested))
        if not clips:
            return []
        with self._torch.running():
            return transcribe_batches(
                clips, size=self._batch_size, decode=lambda batch: self._decoded(batch, code), engine="FunASR"
            )

    def _decoded(self, clips: list[Samples], code: str) -> list[Decoded]:
        torch = imported_torch()
        asked: dict[str, Any] = dict(self._family.options)
        if code in self._family.languages:
            asked["language"] = self._family.languages[code]
        audio = [torch.tensor(clip, dtype=torch.float32) for clip in clips]
        try:
            answers = self._engine.generate(input=audio, batch_size=len(clips), fs=SAMPLE_RATE, **asked)
            texts = [str(answer["text"]) for answer in answers]
        except (ValueError, IndexError, KeyError, AssertionError, NotImplementedError) as error:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        except ImportError as error:
            # FunASR tells only now that it has nothing to compute features with.
            raise missing_extra("kaldi_native_fbank", "funasr") from error
        except (TypeError, AttributeError) as error:
            raise ModelError(
                f"this version of FunASR does not take what {self._architecture} is asked ({error}).",
                hint="Run: pip install 'squtr[funasr]' -U",
            ) from error
        if not texts and len(clips) == 1:  # a Paraformer that found no word gives no answer at all
            texts = [""]
        return [Decoded(plain_text(text)) for text in texts]

    @cached_property
    def _batch_size(self) -> BatchSize:
        return BatchSize(self._first_batch)

    @property
    def _first_batch(self) -> int:
        if self._asked_batch_size != "auto":
            return self._asked_batch_size
        return 1 if self._family.alone else _AUTO_BATCH

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        if self._told_languages:
            return self._told_languages
        if self._known is not None and self._known.languages:
            return self._known.languages
        if self._architecture == "FunASRNano":
            return ("zh", "en", "ja")
        if self._family.languages:
            return tuple(self._family.languages)
        raise UsageError(
            f"the model {self._requested} does not say which languages it knows.",
            hint="Give them, for example languages=['zh', 'en'].",
        )

    @cached_property
    def _family(self) -> _Family:
        return _family(self._architecture, itn=self._itn, max_length=self._max_length)

    @cached_property
    def _architecture(self) -> str:
        file = self._found.path / "config.yaml"
        try:
            found = _ARCHITECTURE.search(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{self._found.path} is no model of FunASR: config.yaml cannot be read ({error}).",
                hint="Give the folder or repository of the model.",
            ) from error
        if found is None:
            raise ModelError(f"{file} names no model.", hint="Give the folder or repository of a speech model.")
        return found[1]

    @cached_property
    def _found(self) -> FoundWeights:
        path = Path(self._requested).expanduser()
        if self._hub == "hf" or path.exists():
            return super()._found
        try:
            hub = importlib.import_module("modelscope.hub.snapshot_download")
        except ImportError as error:
            raise missing_extra("modelscope", "funasr") from error
        name = str(self._requested)
        try:
            folder = Path(hub.snapshot_download(name, revision=self._hub_revision))
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ModelError(
                f"the ModelScope model {name} could not be had ({reason[:200]}).",
                hint="Check the name and the network, or take hub='hf' or a local folder.",
            ) from error
        return FoundWeights(folder, "hub", local_revision(folder), name, name.rpartition("/")[2])

    @cached_property
    def _engine(self) -> Any:
        folder = self._found.path
        try:
            with _quiet():
                from funasr import AutoModel
        except ImportError as error:
            raise missing_extra("funasr", "funasr") from error
        own_code = folder / "model.py"
        trusted: dict[str, Any] = {"trust_remote_code": False}
        if self._torch.trust_remote_code and own_code.is_file():
            trusted = {"trust_remote_code": True, "remote_code": str(own_code)}
        narrow = {"float16": {"fp16": True}, "bfloat16": {"bf16": True}}.get(self._torch.dtype, {})
        torch = imported_torch()
        threads = self._torch.threads or torch.get_num_threads()
        try:
            with _quiet():
                # A folder is read the same way for each hub, but only "ms" merges the settings of the features.
                return AutoModel(
                    model=str(folder),
                    hub="ms",
                    device=self._torch.resolved_device(),
                    disable_update=True,
                    disable_pbar=True,
                    disable_log=True,
                    log_level="ERROR",
                    check_latest=False,
                    frontend_conf={"dither": 0.0},
                    ncpu=threads,
                    **trusted,
                    **narrow,
                )
        except (OSError, ValueError, KeyError, RuntimeError, AssertionError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ModelError(
                f"the model in {folder} cannot be loaded by FunASR: {reason[:300]}.",
                hint="Check the folder, device and dtype.",
            ) from error


def _features() -> str:
    return "torchaudio" if importlib.util.find_spec("torchaudio") is not None else "kaldi-native-fbank"


def plain_text(text: str) -> str:
    """A transcript of FunASR without tags, and without blanks between Chinese or Japanese characters.

    >>> plain_text("<|zh|><|NEUTRAL|><|Speech|><|withitn|>今天 天气 very good 吗")
    '今天天气 very good 吗'
    >>> plain_text("<|nospeech|><|EMO_UNKNOWN|><|Event_UNK|><|woitn|>")
    ''
    """
    return _BETWEEN_HAN.sub("", _TAG.sub("", text)).strip()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """FunASR prints where results belong and sets up logging for the whole program: what was before comes back."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
