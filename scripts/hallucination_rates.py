"""How often `hallucination` (`harness/metrics/flags.py`) is right, on speech and on clips without any.

    python scripts/hallucination_rates.py transcribe OUT.jsonl [--recordings DIR …] [--noises DIR] [--preset fallback]
    python scripts/hallucination_rates.py table OUT.jsonl …

`transcribe` has whisper-base (with `--model`, another one) write what it makes of clips of `mini` and of recordings
(folders with `manifest.jsonl`: file, text, lang), clean and under noise, and of noise, music and silence as long as
they. `table` prints, for each kind of clip, how many transcripts are flagged. Beside them stand texts whose truth is
known without a transcriber: transcripts against the reference of another clip, and references with one to three words
(characters) replaced.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.presets import preset
from squtr.harness.metrics.error_counts import default_unit, tokens
from squtr.harness.metrics.flags import flag_utterance
from squtr.harness.text.normalizers import load_normalizer
from squtr.loaders.audio import decode_audio, resample
from squtr.loaders.jsonl import read_jsonl
from squtr.loaders.keyed import keyed_rng
from squtr.loaders.mixing import level_noise, level_speech, mix, noise_segment
from squtr.loaders.noise.synthetic import SyntheticNoises
from squtr.loaders.records import SAMPLE_RATE, Samples
from squtr.loaders.sources import load_source

SPEECH_LEVELS = (math.inf, 20.0, 10.0, 0.0, -5.0, -10.0)
"""In dB."""
LANGUAGES = ("en", "es", "zh")
QUERIES = 500
"""Of a collection, for texts whose truth is known."""
MODEL_RATE = 16_000


@dataclass(frozen=True, slots=True)
class Clip:
    id: str
    language: str
    text: str
    samples: Samples
    """(T,) float32 at 24 kHz."""


def mini_clips(language: str, each: int) -> Iterator[Clip]:
    source, subset = load_source("mini"), f"mini-{language}"
    queries = list(source.queries(subset))
    for query in queries[:: max(1, len(queries) // each)][:each]:
        yield Clip(query.id, language, query.text, source.speech(query).samples)


def recorded_clips(folder: Path, each: int) -> Iterator[Clip]:
    rows = [row for _, row in read_jsonl(folder / "manifest.jsonl")]
    for row in rows[:: max(1, len(rows) // each)][:each]:
        samples, rate = decode_audio((folder / row["file"]).read_bytes(), row["file"])
        yield Clip(row["file"], row["lang"], row["text"], resample(samples, rate, SAMPLE_RATE))


def music(seconds: float, name: str) -> Samples:
    """Chords of decaying tones with overtones, four a second of which one is struck."""
    rng = keyed_rng(0, "music for flags", "1", name)
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    out = np.zeros(time.size)
    for start in np.arange(0.0, seconds, 0.5):
        for step in rng.choice([0, 2, 4, 5, 7, 9, 11, 12, 16], size=3, replace=False):
            since = time - start
            for overtone in (1, 2, 3, 4):
                tone = np.sin(2 * np.pi * 220.0 * 2 ** (step / 12) * overtone * since) / overtone**1.5
                out += np.where(since >= 0, np.exp(-3 * np.maximum(since, 0)) * tone, 0)
    return np.asarray(0.1 * out / np.sqrt(np.mean(out**2)), dtype=np.float32)


def noises(folder: Path | None) -> dict[str, Samples]:
    """What stands for noise, by name: the embedded families, and recordings."""
    bank = SyntheticNoises()
    found = {info.family: bank.read(info.id) for info in bank.noises() if info.id.endswith("_v01")}
    for path in sorted(folder.glob("*.flac")) if folder else []:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        found[path.stem] = resample(samples.mean(axis=1), rate, SAMPLE_RATE)
    return found


def inputs(place: int, clip: Clip, bank: dict[str, Samples], levels: Sequence[float]) -> Iterator[tuple[str, Samples]]:
    """(condition, audio): the clip under every level, and three clips without speech, as long as it."""
    speech = level_speech(clip.samples)
    for number, snr_db in enumerate(levels):
        if math.isinf(snr_db):
            yield "clean", clip.samples
            continue
        name = sorted(bank)[(place + number) % len(bank)]
        noise = noise_segment(bank[name], 997 * place, clip.samples.size)
        yield f"{snr_db:g} dB", mix(speech, level_noise(noise, speech), snr_db).samples
    kinds = sorted({*bank, "silence", "music"})
    for name in islice(cycle(kinds), 3 * place % len(kinds), 3 * place % len(kinds) + 3):
        if name == "silence":
            audio = np.zeros(clip.samples.size, np.float32)
        elif name == "music":
            audio = music(clip.samples.size / SAMPLE_RATE, clip.id)
        else:
            audio = noise_segment(bank[name], 1009 * place, clip.samples.size)
        yield f"only {name}", audio


def transcribe(options: argparse.Namespace) -> None:
    sets = [list(mini_clips(language, options.each)) for language in LANGUAGES]
    sets += [list(recorded_clips(folder, options.each)) for folder in options.recordings]
    # In turn, so that a run that is cut short has something of every set.
    clips = [clip for place in zip_longest(*sets) for clip in place if clip is not None]
    clips = [clip for clip in clips if options.language in ("", clip.language)]
    settings = preset("fast", "faster-whisper") if options.preset == "fast" else {}
    transcriber = load_transcriber(f"faster-whisper:{options.model}", device="cpu", threads=2, **settings)
    levels = SPEECH_LEVELS if not options.levels else [float(one) for one in options.levels.split(",")]
    bank = noises(options.noises)
    with options.out.open("a", encoding="utf-8") as out:
        for place, clip in enumerate(clips):
            made = list(inputs(place, clip, bank, levels))
            audio = [resample(samples, SAMPLE_RATE, MODEL_RATE) for _, samples in made]
            transcripts = transcriber.transcribe(audio, language=clip.language)
            for (condition, _), found in zip(made, transcripts, strict=True):
                row = {
                    "model": options.model, "preset": options.preset, "condition": condition, "id": clip.id,
                    "language": clip.language, "text": clip.text, "transcript": found.text, "error": found.error,
                    "loop": found.loop, "confidence": found.confidence if math.isfinite(found.confidence) else None,
                }  # fmt: skip
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()


Pair = tuple[str, str, list[str], list[str]]
"""Kind, language, reference, text."""


def tokens_of(text: str, language: str) -> list[str]:
    return tokens(load_normalizer("default", language)(text), default_unit(language), language)


def made_pairs(
    rows: Sequence[dict[str, Any]], collection: Path | None
) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """(kind, language, reference, text) whose truth is known: every text against others, and with words replaced."""
    for language in LANGUAGES:
        texts = {row["text"] for row in rows if row["language"] == language}
        if collection is not None:
            queries = list(read_jsonl(collection / f"xquad-{language}" / "queries.jsonl"))
            texts |= {row["text"] for _, row in queries[:QUERIES]}
        own = [tokens_of(text, language) for text in sorted(texts)]
        words = [word for one in own for word in one]
        for place, reference in enumerate(own):
            rng = random.Random(f"{language} {place}")  # noqa: S311 - a sample, no secret
            for other in rng.sample(own[:place] + own[place + 1 :], min(3, len(own) - 1)):
                yield "of another clip", language, reference, other
            for replaced in (1, 2, 3):
                text = list(reference)
                for at in rng.sample(range(len(text)), min(replaced, len(text))):
                    text[at] = rng.choice(words)
                yield f"{replaced} of its own replaced", language, reference, text


def table(options: argparse.Namespace) -> None:
    rows = [row for path in options.transcripts for _, row in read_jsonl(path)]
    found: dict[tuple[str, str, str], list[tuple[bool, int, float]]] = defaultdict(list)
    for row in rows:
        language = row["language"]
        reference, text = tokens_of(row["text"], language), tokens_of(row["transcript"], language)
        kind = "no speech" if row["condition"].startswith("only ") else row["condition"]
        flagged = flag_utterance(reference, text).hallucination
        confidence = math.nan if row["confidence"] is None else row["confidence"]
        found[f"{row['model']}, {row['preset']}", kind, language].append((flagged, len(text), confidence))
    for kind, language, reference, text in made_pairs(rows, options.collection):
        found["texts", kind, language].append((flag_utterance(reference, text).hallucination, len(text), math.nan))
    print("of\tkind\tlanguage\tn\tflagged\twith 3 words or 4 characters\tconfidence: median, of the flagged")
    for (of, kind, language), each in sorted(found.items()):
        long = sum(length >= (4 if default_unit(language) == "char" else 3) for _, length, _ in each)
        told = [np.nanmedian(own) if own else math.nan for own in (
            [c for _, _, c in each if not math.isnan(c)], [c for flagged, _, c in each if flagged and not math.isnan(c)]
        )]  # fmt: skip
        words = f"{told[0]:.2f}, {told[1]:.2f}"
        print(of, kind, language, len(each), sum(flagged for flagged, _, _ in each), long, words, sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    write = commands.add_parser("transcribe")
    write.add_argument("out", type=Path)
    write.add_argument("--recordings", type=Path, action="append", default=[])
    write.add_argument("--noises", type=Path)
    write.add_argument("--model", default="whisper-base")
    write.add_argument("--preset", choices=("fast", "fallback"), default="fast")
    write.add_argument("--each", type=int, default=10, help="clips of each set")
    write.add_argument("--levels", default="", help="SNRs in dB, inf for clean")
    write.add_argument("--language", default="")
    write.set_defaults(run=transcribe)
    show = commands.add_parser("table")
    show.add_argument("transcripts", type=Path, nargs="+")
    show.add_argument("--collection", type=Path, help="folder of xquad-<language>/queries.jsonl, for more texts")
    show.set_defaults(run=table)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
