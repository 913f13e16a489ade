"""Words: who may name a benchmark, and the words that are not used here, with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("loaders", "harness", "leaderboard", "src", "dataset_cards", "scripts")
pytestmark = pytest.mark.skipif(not (ROOT / "harness").is_dir(), reason="only in a checkout")

BENCHMARKS = r"rir[_-]mega|RIR-Mega|\bescucha|_escucha|ESCUCHA|BENCHMARKS\[\"|benchmark(?:=| == | in .)\""
"""`squtr` is the package's name too: it is looked for where a benchmark is chosen or compared."""

MAY_NAME_BENCHMARKS = {
    "harness/tasks/": "tasks",
    "harness/benchmarks.py": "the table of benchmarks",
    "harness/systems/papers/": "what publications evaluated, by the publication's name",
    "loaders/sources/": "sources",
    "leaderboard/published/": "published results",
    "dataset_cards/": "citations",
    "harness/mteb/catalog.py": "the tasks as mteb lists them, published under the benchmark's name",
    # The same names for something else.
    "loaders/rirs/rir_mega.py": "RIR-Mega is also a bank of impulse responses",
    "loaders/banks/": "RIR-Mega is also a bank of impulse responses; what the publication took from DEMAND",
    "loaders/rirs/plan.py": "a key of random draws: another one gives other data",
    "scripts/make_questions_mini.py": "a key of random draws: another one gives other data",
    "harness/components/transcribers/presets.py": "published decode settings, by the publication's name",
    "harness/text/": "`squtr-compat` is the published scoring",
}


def files(*suffixes: str, rooms: tuple[str, ...] = ROOMS) -> Iterator[tuple[str, str]]:
    """(path, text) of the files of the rooms with these suffixes."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*")):
            # `src/squtr` links to the rooms.
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in suffixes and not re.match(
                r"src/squtr/(?:loaders|harness|leaderboard|dataset_cards)/", name
            ):
                yield name, path.read_text(encoding="utf-8")


def code_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not examples of commands, which users type as they are."""
    for number, line in enumerate(text.splitlines(), 1):
        if not re.match(r"\s+squtr [a-z]+ ", line):
            yield number, line


def test_benchmarks_are_named_in_few_places() -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in files(".py", ".html", ".js")
        if not name.startswith(tuple(MAY_NAME_BENCHMARKS))
        for number, line in code_lines(text)
        if re.search(BENCHMARKS, line)
    ]
    assert found == []


WRITE_INSTEAD = {
    "sound sounds": "audio, clip, waveform",
    "hear hears heard hearing ear ears": "transcribe, transcriber, ASR",
    "listen listens listened listening listener listeners": "transcribe, transcriber, ASR",
    "said": "reference, hypothesis, reply; stated, reported",
    "recognizer recognizers recogniser recognisers": "transcriber",
    "arm arms": "condition",
    "kitchen kitchens corner corners demands": "inference, plan, search request, cache key",
    "licence licences normaliser normalisers normalise normalised": "American spelling",
    "recognise recognised synthesise synthesised colour colours": "American spelling",
}
"""Words that are not used in code, messages and pages, and what is written instead."""

PHRASES = {
    r"the whole way": "full pipeline",
    r"with patience": "with backoff",
    r"\blies? apart\b": "written separately",
    r"what the air\b": "condition",
    r"\b[Rr]eady (?:transcripts?|runs?)\b|ReadyTranscripts": "precomputed transcripts, precomputed run",
    r"whose loss": "loss attribution (ASR or retriever)",
    r"(?:reader|control) without": "text-only baseline",
}

MAY_USE_WORDS = {
    # (file or folder, word): why
    ("loaders/reverb.py", "sound"): "direct sound: ISO 3382",
    ("loaders/rir_measures.py", "sound"): "direct sound: ISO 3382",
    ("docs/recognition.md", "sound"): "direct sound: ISO 3382",
    ("docs/data.md", "sound"): "direct sound: ISO 3382",
    ("loaders/rir_checks.py", "sound"): "direct sound: ISO 3382",
    ("loaders/rirs/simulated.py", "sound"): "the speed of sound",
    ("loaders/quality/verdicts.py", "sounds"): "an example of a judge's answer",
    ("loaders/banks/catalog.py", "sound"): "folders of MUSAN",
    ("loaders/banks/catalog.py", "sounds"): "the title of MUSAN",
    ("loaders/noise/musan.py", "sound"): "ids of MUSAN",
    ("loaders/noise/musan.py", "sounds"): "what MUSAN holds",
    ("loaders/noise/", "kitchen"): "a noise made by code",
    ("harness/report/svg.py", "corners"): "of a drawing",
    ("leaderboard/site/assets/charts.js", "corners"): "of a drawing",
    ("loaders/quality/prompt.py", ""): "a prompt with a version: other words are another judge",
    ("loaders/templates/speech_review/", "listen"): "people listen",
    ("loaders/ray_map.py", "listens"): "a port",
    ("harness/text/english_spelling.py", ""): "both spellings, to fold them",
    ("loaders/sources/recorded.py", "licence"): "a key that users' tables may have",
}


NAMES_OF_OTHERS = r"EventListener|SoundFile|sounds_path|Sound/Audio|\btest_\w+"


def words(text: str) -> Iterator[tuple[int, str]]:
    """(line, word in lower case), names split into their parts."""
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", re.sub(NAMES_OF_OTHERS, "", line)):
            yield number, word.lower()


def allowed(name: str, word: str) -> bool:
    return any(name.startswith(place) and other in {word, ""} for place, other in MAY_USE_WORDS)


def test_the_words_of_the_field() -> None:
    banned = {word: instead for several, instead in WRITE_INSTEAD.items() for word in several.split()}
    pages = [
        (page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))
        for page in ROOT.rglob("*.md")
        if page.relative_to(ROOT).parts[0] in {"docs", "README.md", "CONTRIBUTING.md", "dataset_cards"}
    ]
    found = []
    for name, text in [*files(".py", ".html", ".js", ".css", ".template"), *pages]:
        found += [
            f"{name}:{number}: {word}: write {banned[word]}"
            for number, word in words(text)
            if word in banned and not allowed(name, word)
        ]
        found += [
            f"{name}: {phrase}: write {instead}" for phrase, instead in PHRASES.items() if re.search(phrase, text)
        ]
    assert found == []
