"""CosyVoice 3 as a synthesizer: voices cloned from reference clips, the engine of the published data set.

Fun-CosyVoice3-0.5B-2512 (Apache-2.0), https://github.com/FunAudioLLM/CosyVoice, arXiv 2505.17589. It is not on PyPI as
its authors publish it: clone the repository with its submodules, install its requirements, and give the path.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from ...errors import AudioError, MissingExtraError, ModelError, SynthesisError, UsageError
from ..audio import resample
from ..manifest import file_sha256
from ..records import Samples
from .backends import SYNTHESIZERS, check_language
from .protocol import SynthesizerSpec
from .speakers import Speaker, SpeakerTable
from .speaking import has_speech

HUB_REPOSITORY = "FunAudioLLM/Fun-CosyVoice3-0.5B-2512"
END_OF_PROMPT = "<|endofprompt|>"
_WEIGHTS = ("llm.pt", "flow.pt", "hift.pt")
_CLIP_MIN_HZ, _CLIP_MAX_S = 16_000, 30.0
"""What the official front end requires of a reference clip."""


class CosyVoiceSynthesizer:
    """CosyVoice 3 through the official package.

    `model` is the folder of the weights (with `cosyvoice3.yaml`), `speakers` a folder with a table of speakers and
    their reference clips (see `speakers`), `checkout` a clone of the official repository ("" if it is importable
    already). A voice is a speaker's id. `fp16` halves the memory on a GPU, `instruction` is the prompt before every
    text. A speaker whose clip has a transcript is cloned zero-shot, one without by the cross-lingual mode.
    """

    def __init__(
        self,
        *,
        model: str | Path = "",
        speakers: str | Path = "",
        checkout: str | Path = "",
        revision: str = "",
        fp16: bool = False,
        instruction: str = "You are a helpful assistant.",
    ) -> None:
        if END_OF_PROMPT in instruction:
            raise UsageError(f"the instruction holds {END_OF_PROMPT!r}.", hint="Leave it out; it is added.")
        self.model, self.speakers, self.checkout = str(model), str(speakers), str(checkout)
        self.revision, self.fp16, self.instruction = revision, fp16, instruction
        self._table: SpeakerTable | None = None
        self._engine: Any = None

    def __getstate__(self) -> dict[str, object]:
        # The network loads again at first use.
        return {**self.__dict__, "_engine": None}

    @property
    def table(self) -> SpeakerTable:
        """Raises `UsageError` if no folder was given or it has no table."""
        if self._table is None:
            if not self.speakers:
                raise UsageError(
                    "the synthesizer 'cosyvoice' needs a folder of reference clips.",
                    hint="Give speakers=DIR, a folder with speakers.jsonl.",
                )
            self._table = SpeakerTable(self.speakers)
        return self._table

    @property
    def spec(self) -> SynthesizerSpec:
        return SynthesizerSpec(
            "cosyvoice",
            _model_folder(self.model).name,
            self.revision or _weights_sha256(self.model),
            f"Apache-2.0 AND {self.table.license}",
            {"fp16": self.fp16, "instruction": self.instruction, "speakers": self.table.version},
        )

    @property
    def languages(self) -> tuple[str, ...]:
        trained = SYNTHESIZERS["cosyvoice"].languages
        return tuple(code for code in trained if not self.speakers or code in self.table.languages)

    def voices(self, language: str) -> tuple[str, ...]:
        check_language("cosyvoice", language)
        return tuple(sorted(speaker.id for speaker in self.table.of_language(language)))

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        check_language("cosyvoice", language)
        speaker = self.table.find(voice, language)
        if not has_speech(text):
            raise SynthesisError(f"there is nothing to say in {text!r}.", hint="Give a text with words.")
        if "<|" in text:
            raise SynthesisError(f"{text!r} holds '<|', which CosyVoice obeys.", hint="Remove it from the text.")
        clip = str(self._reference(speaker))
        engine = self._load()
        prompt = f"{self.instruction}{END_OF_PROMPT}"
        try:
            with _seeded(seed):
                if speaker.transcript:
                    takes = engine.inference_zero_shot(text, f"{prompt}{speaker.transcript}", clip, stream=False)
                else:
                    takes = engine.inference_cross_lingual(f"{prompt}{text}", clip, stream=False)
                pieces = [_samples(take["tts_speech"]) for take in takes]
        except (RuntimeError, ValueError, AssertionError) as error:
            raise SynthesisError(
                f"CosyVoice failed on {text!r} with the speaker {voice!r}: {error}.", hint="Try another speaker."
            ) from error
        out = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)
        if not out.any() or not np.isfinite(out).all():
            raise SynthesisError(f"CosyVoice gave nothing usable for {text!r}.", hint="Try another speaker or seed.")
        out = resample(out, int(engine.sample_rate))
        return np.asarray(out / max(1.0, float(np.abs(out).max())), dtype=np.float32)

    def _reference(self, speaker: Speaker) -> Path:
        path = self.table.clip(speaker)
        _check_clip(path)
        return path

    def _load(self) -> Any:
        if self._engine is None:
            folder = _model_folder(self.model)
            if not (folder / "cosyvoice3.yaml").is_file():
                raise ModelError(
                    f"{folder} holds no CosyVoice 3 (cosyvoice3.yaml is missing).",
                    hint=f"Run: hf download {HUB_REPOSITORY} --local-dir {folder}",
                )
            auto_model = _auto_model(self.checkout)
            try:
                self._engine = auto_model(model_dir=str(folder), fp16=self.fp16)
            except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
                raise ModelError(f"CosyVoice cannot load {folder}: {error}.", hint="Download it again.") from error
        return self._engine


def _model_folder(model: str) -> Path:
    if not model:
        raise UsageError(
            "the synthesizer 'cosyvoice' needs the folder of its weights.",
            hint=f"Run: hf download {HUB_REPOSITORY} --local-dir DIR, and give model=DIR.",
        )
    return Path(model).expanduser()


def _auto_model(checkout: str) -> Any:
    """The official loader. A checkout is put on the module path, where its own modules look for each other."""
    if checkout:
        root = Path(checkout).expanduser()
        if not (root / "cosyvoice" / "cli").is_dir():
            raise ModelError(f"{root} is no checkout of CosyVoice.", hint=SYNTHESIZERS["cosyvoice"].install)
        for path in (root, root / "third_party" / "Matcha-TTS"):
            if str(path) not in sys.path:
                sys.path.append(str(path))
    try:
        return importlib.import_module("cosyvoice.cli.cosyvoice").AutoModel
    except ImportError as error:
        raise MissingExtraError(
            f"CosyVoice cannot be imported: {error}.", hint=SYNTHESIZERS["cosyvoice"].install
        ) from error
    except AttributeError as error:
        raise ModelError("this CosyVoice is older than version 3.", hint="Update the checkout.") from error


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """All generators that CosyVoice draws from, seeded, and afterwards as they were."""
    import torch

    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed % (1 << 63))
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)


def _samples(speech: Any) -> Samples:
    return np.asarray(speech.detach().cpu().numpy(), dtype=np.float32).reshape(-1)


@functools.lru_cache(maxsize=512)
def _check_clip(path: Path) -> None:
    try:
        info = soundfile.info(str(path))
    except (soundfile.LibsndfileError, OSError) as error:
        raise AudioError(f"the reference clip {path} cannot be read: {error}.", hint="Replace it.") from error
    if info.samplerate < _CLIP_MIN_HZ or not 0.5 <= info.duration <= _CLIP_MAX_S:
        raise AudioError(
            f"the reference clip {path} has {info.samplerate} Hz and {info.duration:.1f} s.",
            hint=f"CosyVoice needs at least {_CLIP_MIN_HZ} Hz and 0.5 to {_CLIP_MAX_S:g} s.",
        )


@functools.lru_cache(maxsize=4)
def _weights_sha256(model: str) -> str:
    folder = _model_folder(model)
    digest = hashlib.sha256()
    for name in _WEIGHTS:
        if not (folder / name).is_file():
            raise ModelError(f"{folder} lacks {name}.", hint=f"Run: hf download {HUB_REPOSITORY} --local-dir {folder}")
        digest.update(file_sha256(folder / name).encode())
    return digest.hexdigest()
