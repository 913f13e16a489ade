"""Models for the tests of what goes through mteb: a spy, a toy encoder of sound and text, a recognizer that garbles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from squtr.errors import AudioError
from squtr.harness.components.retrievers.fusion import reciprocal_rank_fusion
from squtr.harness.protocols import ComponentSpec, Hit, Hypothesis, Transcript
from squtr.loaders.data import SpeechData
from squtr.loaders.records import SpokenQuery

from .encoders_for_tests import HashedWordsEncoder


class SpyEncoder:
    """An mteb encoder that notes everything it is shown."""

    def __init__(self, give: str = "numpy") -> None:
        from mteb.models import ModelMeta

        self.give = give
        self.batches: list[dict[str, Any]] = []
        self.datasets: list[Any] = []
        self.told: set[tuple[str, str]] = set()
        self.documents = 0
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": "org/spy", "revision": "1", "modalities": ["audio", "text"]}
        )

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any = None, **_: Any
    ) -> Any:
        self.told.add((task_metadata.name, hf_subset))
        self.datasets.append(inputs.dataset)
        vectors = []
        for batch in inputs:
            self.batches.append(batch)
            if "audio" in batch:
                vectors += [spectrum_vector(item["array"]) for item in batch["audio"]]
            else:
                vectors += [words_vector(text) for text in batch["text"]]
            if prompt_type is not None and prompt_type.value == "document":
                self.documents += len(batch["id"])
        found = np.array(vectors, dtype=np.float32)
        if self.give == "numpy":
            return found
        import torch

        return torch.from_numpy(found).to(torch.bfloat16 if self.give == "bfloat16" else torch.float32)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        assert type(embeddings1) is type(embeddings2)
        assert embeddings1.dtype == embeddings2.dtype
        return embeddings1 @ embeddings2.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return (embeddings1 * embeddings2).sum(1)


def words_vector(text: str, width: int = 16) -> NDArray[np.float32]:
    return HashedWordsEncoder(width).encode([text], role="document")[0]


def spectrum_vector(samples: NDArray[np.float32], width: int = 16) -> NDArray[np.float32]:
    """A unit vector that follows the sound's spectrum."""
    power = np.abs(np.fft.rfft(np.asarray(samples, dtype=np.float64), n=4096)) ** 2
    bands = np.log([band.sum() + 1e-12 for band in np.array_split(power, 64)])
    vector = np.random.default_rng(7).standard_normal((width, 64)) @ (bands - bands.mean())
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class SoundEncoder:
    """A toy `AudioTextEncoder`: the spectrum of a sound, the words of a text. It cannot encode some sounds."""

    sample_rate = 16_000

    def __init__(self) -> None:
        self.texts = 0
        self.spec = ComponentSpec("audio_text_encoder", "test", "sound encoder", "test/sound", "1", {"width": 16})

    def supports(self, language: str) -> bool:
        return language in {"en", "zh"}

    def encode_audio(self, clips: Sequence[NDArray[np.float32]], *, language: str) -> NDArray[np.float32]:
        rows = [
            np.full(16, np.nan) if int(np.abs(clip).sum()) % 11 == 0 else spectrum_vector(clip, 16) for clip in clips
        ]
        return np.array(rows, dtype=np.float32).reshape(len(clips), 16)

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return np.array([words_vector(text) for text in texts], dtype=np.float32).reshape(len(texts), 16)


class Garbler:
    """Hears some other query of the data, with words missing, decided by the sound; sometimes nothing."""

    sample_rate = 16_000

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        self.texts = texts
        self.calls = 0
        self.spec = ComponentSpec("transcriber", "test", "garbler", revision="1")

    def supports(self, language: str) -> bool:
        return language in self.texts

    def transcribe(self, clips: Sequence[NDArray[np.float32]], *, language: str) -> list[Transcript]:
        self.calls += len(clips)
        heard = []
        for clip in clips:
            rng = np.random.default_rng(int(np.abs(clip).sum() * 100))
            known = self.texts[language]
            text = known[int(rng.integers(len(known)))]
            words = text.split() if language == "en" else list(text)
            kept = [word for word in words if rng.random() < 0.8]
            heard.append(Transcript("" if rng.random() < 0.15 else (" " if language == "en" else "").join(kept)))
        return heard


class SeveralGarbler(Garbler):
    """Hears three things for every sound, of which the second is likelier than the others together."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        super().__init__(texts)
        self.spec = ComponentSpec("transcriber", "test", "several", revision="1", settings={"n_best": 3})

    def transcribe(self, clips: Sequence[NDArray[np.float32]], *, language: str) -> list[Transcript]:
        first = super().transcribe(clips, language=language)
        known = self.texts[language]
        found = []
        for heard, clip in zip(first, clips, strict=True):
            others = [known[(int(np.abs(clip).sum()) + step) % len(known)] for step in (1, 2)]
            scored = zip((heard.text, *others), (-2.0, -0.1, -3.0), strict=True)
            found.append(Transcript(heard.text, hypotheses=tuple(Hypothesis(text, score) for text, score in scored)))
        return found


class Halved:
    """A front end at a rate of its own: every other clip quieter by half, and some clips it cannot work on."""

    sample_rate = 8_000
    spec = ComponentSpec("front_end", "test", "halved", revision="1")

    def enhance(self, clips: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        for clip in clips:
            if int(np.abs(clip).sum()) % 5 == 0:
                raise AudioError("this clip is too much.")
        return [clip / 2 if int(np.abs(clip).sum()) % 2 else clip for clip in clips]


class Fused:
    """A composite retriever: two others, fused by rank. Notes at which depth it is asked."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.asked: set[int] = set()
        settings = {"parts": [part.spec.fingerprint for part in parts]}
        self.spec = ComponentSpec("retriever", "hybrid", "fused", revision="1", settings=settings)

    def supports(self, language: str) -> bool:
        return all(part.supports(language) for part in self.parts)

    def part_depth(self, k: int) -> int:
        return k

    def index(self, documents: Any, *, language: str) -> None:
        for part in self.parts:
            part.index(documents, language=language)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.asked.add(k)
        return self.combine(queries, [part.search(queries, k=self.part_depth(k)) for part in self.parts], None, k=k)

    def combine(self, queries: Sequence[str], rankings: Any, documents: Any, *, k: int) -> list[list[Hit]]:
        return [reciprocal_rank_fusion([ranking[i] for ranking in rankings], k=k) for i in range(len(queries))]


class Renamed:
    """Paired data whose subsets have other names, and some of whose clips are broken."""

    def __init__(self, data: SpeechData, names: Mapping[str, str], broken: Mapping[str, bytes] | None = None) -> None:
        self._data, self._names, self._broken = data, names, broken or {}
        self.recipe, self.revision, self.manifest_sha256 = data.recipe, data.revision, data.manifest_sha256
        self.subsets = {name: data.subsets[old] for name, old in names.items()}
        self.conditions = data.conditions

    def queries(self, subset: str) -> Any:
        return self._data.queries(self._names[subset])

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        from dataclasses import replace

        for query in self._data.spoken(self._names[subset], condition, start=start, stop=stop):
            yield replace(query, audio=self._broken.get(query.id, query.audio))

    def documents(self, subset: str) -> Any:
        return self._data.documents(self._names[subset])

    def qrels(self, subset: str) -> Any:
        return self._data.qrels(self._names[subset])
