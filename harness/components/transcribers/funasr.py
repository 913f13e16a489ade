"""FunASR: Paraformer (arXiv 2206.08317), SenseVoice (arXiv 2407.04051), Fun-ASR-Nano (arXiv 2509.12508)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from ....errors import ModelError, UsageError, missing_extra
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting, Transcript
from ..batches import BatchSize, require_positive
from ..torch_models import AutoBatch, imported_torch
from ..weights import FoundWeights, local_revision
from .common import Decoded, minor_version, primary_code, require_language, transcribe_batches
from .funasr_models import KNOWN_MODELS, Family, family
from .funasr_weights import check_weights
from .torch_transcriber import TorchTranscriber

Hub = Literal["hf", "ms"]
Language = Literal["forced", "auto"]

_AUTO_BATCH = 32
_TAG = re.compile(r"<\|[^|<>]*\|>")
_HAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u3000-\u303f\uff00-\uffef"
_BETWEEN_HAN = re.compile(rf"(?<=[{_HAN}])\s+(?=[{_HAN}])")
_NARROW = {"float16": "fp16", "bfloat16": "bf16"}


class FunASRTranscriber(TorchTranscriber):
    """A model of FunASR.

    `model` is a name of `KNOWN_MODELS`, a folder, or a repository on `hub`: "hf" (Hugging Face) or "ms" (ModelScope,
    identified by the sha256 of its files). Its class must be one of `FAMILIES`. `device`, `dtype` and `threads` are
    those of `TorchOptions`; only the language model of Fun-ASR runs in another dtype than float32. `batch_size` "auto"
    is 1 for Paraformer, whose last characters depend on the clips beside it (then it is in the spec), else 32; models
    that FunASR decodes by beam search are always given one clip.

    `itn` asks SenseVoice and Fun-ASR for digits and punctuation as written, None is FunASR's own default (SenseVoice
    without, Fun-ASR with). `language` "auto" forces none on them. `max_length` caps the new tokens of Fun-ASR
    (published: 512); FunASR does not tell when it cut a text. `languages` says what an unlisted model knows.

    A checkpoint whose weights are not those of its class is an error; `unused_weights` are patterns (regular
    expressions on a weight's name) of what is left by design.

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
        itn: bool | None = True,
        language: Language = "forced",
        max_length: int = 512,
        languages: Sequence[str] = (),
        unused_weights: Sequence[str] = (),
        trust_remote_code: bool = False,
    ) -> None:
        if hub not in ("hf", "ms"):
            raise UsageError(f"unknown hub {hub!r}.", hint="Known: hf, ms.")
        if language not in ("forced", "auto"):
            raise UsageError(f"unknown language {language!r} of FunASR.", hint="Known: forced, auto.")
        require_positive(max_length=max_length)
        self._known = KNOWN_MODELS.get(str(model).lower())
        if self._known is not None and not self._known.hf:
            hub = "ms"
        super().__init__(
            getattr(self._known, hub) if self._known is not None else model,
            batch_size=batch_size,
            revision=revision,
            device=device,
            dtype=dtype,
            threads=threads,
            trust_remote_code=trust_remote_code,
            unused_weights=unused_weights,
        )
        self._hub: Hub = hub
        self._itn = itn
        self._language: Language = language
        self._max_length = max_length
        self._told_languages = tuple(primary_code(language) for language in languages)

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            **self._asked,
            "architecture": self._architecture,
            **({} if self._family.batches == "any" else {"batch_size": self._first_batch}),
            "dither": 0.0,
            "features": _features(),
            "funasr": minor_version("funasr", "funasr", "funasr"),
            "forced_languages": sorted(self._family.languages) if self._language == "forced" else [],
            "text": "without tags and without blanks between Han",
        }
        if self._language == "auto":
            settings["language"] = "not forced"
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
        asked: dict[str, Any] = dict(self._asked)
        spoken = self._family.auto if self._language == "auto" else self._family.languages.get(code, "")
        if spoken:
            asked["language"] = spoken
        if self._family.half == "language model" and self._torch.dtype in _NARROW:
            asked["llm_dtype"] = _NARROW[self._torch.dtype]
        audio = [torch.tensor(clip, dtype=torch.float32) for clip in clips]
        engine = self._engine
        try:
            # Without `fs`: FunASR takes 16 kHz, and Fun-ASR-Nano would be given it twice.
            answers = engine.generate(input=audio, batch_size=len(clips), **asked)
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
    def _asked(self) -> dict[str, Setting]:
        """What every clip is asked with."""
        known = self._family
        asked = dict(known.options)
        if known.itn:
            asked[known.itn] = known.itn_default if self._itn is None else self._itn
        if self._architecture == "FunASRNano":
            asked["max_length"] = self._max_length
        return asked

    @property
    def _first_batch(self) -> int:
        if self._family.batches == "one":
            return 1
        if self._asked_batch_size != "auto":
            return self._asked_batch_size
        return 1 if self._family.batches == "one by default" else _AUTO_BATCH

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
    def _family(self) -> Family:
        known = family(self._architecture, str(self._requested))
        if known.half == "none" and self._torch.dtype in _NARROW:
            raise UsageError(
                f"FunASR runs {self._architecture} in float32 only, not in {self._torch.dtype}.",
                hint="Leave the dtype out.",
            )
        if self._language == "auto" and not known.languages:
            raise UsageError(f"{self._architecture} is told no language.", hint="Leave language='auto' out.")
        return known

    @cached_property
    def _architecture(self) -> str:
        found = self._config.get("model")
        if not isinstance(found, str):
            raise ModelError(
                f"{self._found.path / 'config.yaml'} names no model.",
                hint="Give the folder or repository of a speech model.",
            )
        return found

    @cached_property
    def _config(self) -> dict[str, Any]:
        file = self._found.path / "config.yaml"
        try:
            found = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ModelError(
                f"{self._found.path} is no model of FunASR: config.yaml cannot be read ({error}).",
                hint="Give the folder or repository of the model.",
            ) from error
        return found if isinstance(found, dict) else {}

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
        torch = imported_torch()
        threads = self._torch.threads or torch.get_num_threads()
        try:
            with _quiet():
                # A folder is read the same way for each hub, but only "ms" merges the settings of the features.
                engine = AutoModel(
                    model=str(folder),
                    hub="ms",
                    device=self._torch.resolved_device(),
                    disable_update=True,
                    disable_pbar=True,
                    disable_log=True,
                    log_level="WARNING",
                    check_latest=False,
                    frontend_conf={"dither": 0.0},
                    ncpu=threads,
                    **trusted,
                    **self._parts,
                )
        except (OSError, ValueError, KeyError, RuntimeError, AssertionError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ModelError(
                f"the model in {folder} cannot be loaded by FunASR: {reason[:300]}.",
                hint="Check the folder, device and dtype.",
            ) from error
        unused = (*self._family.unused, *self._torch.unused_weights)
        check_weights(engine.model, str(engine.kwargs.get("init_param") or ""), name=self._name, unused=unused)
        if self._architecture == "FunASRNano":
            # It only times the words, for which FunASR needs torchaudio, and with it clips are decoded one by one.
            engine.model.ctc_decoder = None
        return engine

    @property
    def _parts(self) -> dict[str, dict[str, str]]:
        """Paths of models inside the folder (Fun-ASR's language model), which FunASR would look for on the Hub."""
        found = {}
        for part, settings in self._config.items():
            path = settings.get("init_param_path") if isinstance(settings, dict) else None
            if isinstance(path, str) and (self._found.path / path).exists():
                found[part] = {"init_param_path": str(self._found.path / path)}
        return found


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
    """FunASR prints where results belong and sets up logging for the whole program: what was before comes back. Its
    warnings stay.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.setLevel(logging.WARNING)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
