"""An engine and a transcriber that travel to Ray's workers, and what a process of its own does with them."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from squtr.errors import ModelError, UsageError
from squtr.harness.protocols import Transcript
from squtr.loaders.ray_map import RayMap
from squtr.loaders.records import Query, Samples
from squtr.loaders.synthesis.candidates import Rating
from squtr.loaders.synthesis.ray_speaking import RaySpeaking
from squtr.loaders.synthesis.speech_folder import SpeechFolder
from squtr.loaders.synthesis.synthesizing import Speaking, synthesize

from .speech_for_tests import HummingSynthesizer, as_it_is, queries, word_rate

TEXTS = [*queries(10), Query("mute", "tiny", "en", "this is unspeakable"), *queries(5, "es", "otra")]


class NotedSynthesizer(HummingSynthesizer):
    """Writes a line when it loads: at its first text in a process."""

    def __init__(self, notes: str) -> None:
        super().__init__()
        self.notes = notes

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        if not self.asked:
            with Path(self.notes).open("a") as out:
                out.write(f"{os.getpid()}\n")
        return super().synthesize(text, voice=voice, language=language, seed=seed)


class BrokenSynthesizer(HummingSynthesizer):
    """Has no weights."""

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        raise ModelError("the weights of 'hum' are missing.", hint="Fetch them.")


class Muffled:
    """Transcribes the first few words of the texts, how many is decided by the samples."""

    sample_rate = 16_000

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        words = "what is the answer to number".split()
        return [Transcript(" ".join(words[: hashlib.sha256(clip.tobytes()).digest()[0] % 7])) for clip in clips]


def speaking(engine: HummingSynthesizer) -> Speaking:
    return Speaking(engine, [Rating(Muffled(), "muffled", word_rate, as_it_is)], {}, 3, "seed", in_words=False)


def main(whole: Path, begun: Path, notes: Path) -> None:
    """Speak all into `whole`, the rest into `begun`, and print the errors of what cannot be done."""
    engine = RaySpeaking(num_cpus=2, actors=2)
    told: list[int] = []
    synthesize(TEXTS, SpeechFolder(whole), speaking(NotedSynthesizer(str(notes))), told.append, engine=engine)
    print("told", sum(told), "driver spoke", str(os.getpid()) in notes.read_text().split())
    synthesize(TEXTS, SpeechFolder(begun), speaking(HummingSynthesizer()), engine=engine)
    try:
        synthesize(TEXTS, SpeechFolder(whole.with_name("broken")), speaking(BrokenSynthesizer()), engine=engine)
    except ModelError as error:
        print("came back:", error)
    try:
        list(RayMap(gpus_per_actor=1)(BrokenSynthesizer, (), [1]))
    except UsageError as error:
        print("refused:", error)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
