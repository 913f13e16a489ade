"""Components as a user writes them, found by dotted path."""

from __future__ import annotations

from squtr.harness.protocols import ComponentSpec, Transcript


class FixedTranscriber:
    sample_rate = 16_000

    def __init__(self, text="hello", revision="1"):
        self.text, self.spec = text, ComponentSpec("transcriber", "class", "fixed", revision=revision)

    def supports(self, language):
        return language == "en"

    def transcribe(self, clips, *, language):
        return [Transcript(self.text) for _ in clips]


class Mute:
    """A transcriber that is not finished."""

    spec = ComponentSpec("transcriber", "class", "mute")

    def transcribe(self, clips):
        return []


class WrongCall(FixedTranscriber):
    def transcribe(self, clips):
        return []


class WrongKind(FixedTranscriber):
    def __init__(self):
        self.spec = ComponentSpec("retriever", "class", "wrong")


class WrongSpec(FixedTranscriber):
    def __init__(self):
        self.spec = {"name": "wrong"}


class BrokenSpec(FixedTranscriber):
    def __init__(self):
        pass

    @property
    def spec(self):
        raise KeyError("weights")


class BothAtOnce(FixedTranscriber):
    def enhance(self, clips):
        return list(clips)


class Raises:
    def __init__(self, folder="nowhere"):
        raise FileNotFoundError(folder)


class Passing:
    """Passes everything on to what it holds."""

    def __init__(self):
        self._inner = FixedTranscriber()

    def __getattr__(self, name):
        return getattr(self.__dict__["_inner"], name)


def make_transcriber(text="from a function"):
    return FixedTranscriber(text)


READY = FixedTranscriber("ready")
