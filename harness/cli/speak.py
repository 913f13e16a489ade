"""Synthesize one text into an audio file, 24 kHz mono."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import Extend, note, say, say_json
from .rating import NONE, add_engine_options, engine_from, ratings_from

EXAMPLE = """example:
  squtr speak "How much is 5 km in miles?" --language en --engine espeak --out query.wav
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", default="", help="the text to speak")
    parser.add_argument("--language", required=True, metavar="LANG", help="language of the text, for example zh")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write: .wav or .flac")
    add_engine_options(parser)
    parser.add_argument("--voice", metavar="NAME", help="a voice of the engine (one drawn from the text)")
    parser.add_argument("--candidates", type=int, default=1, metavar="N", help="takes to compare (1)")
    parser.add_argument(
        "--transcriber",
        action=Extend,
        nargs="+",
        metavar="NAME",
        help="rates the takes, for example whisper-base; the worse of two counts (none)",
    )
    parser.add_argument("--list-voices", action="store_true", help="say which voices the engine has, and stop")
    parser.add_argument("--json", action="store_true", help="print one JSON object about the clip")


def run(arguments: argparse.Namespace) -> int:
    from ...errors import UsageError
    from ...loaders.audio import encode_flac
    from ...loaders.quality.judges import wav_bytes
    from ...loaders.quality.measures import gate, measure_clip
    from ...loaders.quality.report import REASONS
    from ...loaders.records import SAMPLE_RATE, Query
    from ...loaders.synthesis.backends import SYNTHESIZERS, quality_of
    from ...loaders.synthesis.candidates import RatedTake, best_take, plan_takes, rate_takes, speak_takes
    from ...loaders.synthesis.speech_folder import number_or_none, write_bytes
    from ...loaders.synthesis.spoken_form import spoken_text
    from ...loaders.synthesis.synthesizing import choose_voices

    language, out = arguments.language, arguments.out
    engine = engine_from(arguments)
    voices = choose_voices(engine, [arguments.voice] if arguments.voice else [], [language])[language]
    if arguments.list_voices:
        say_json(voices) if arguments.json else say("\n".join(voices))
        return 0
    if quality := quality_of(arguments.engine, language):
        note(f"squtr: {language}: {quality}.")
    if not arguments.text or out is None:
        raise UsageError("the text or --out is missing.", hint='Write squtr speak "TEXT" --language LANG --out FILE.')
    if out.suffix.lower() not in {".wav", ".flac"}:
        raise UsageError(f"the file {out} is neither .wav nor .flac.", hint="Choose one of these.")
    transcribers = arguments.transcriber or [NONE]
    if arguments.candidates > 1 and transcribers == [NONE]:
        raise UsageError("several takes cannot be compared without a transcriber.", hint="Add --transcriber NAME.")
    ratings = ratings_from(transcribers, arguments.threads, [language])
    # The text is its own id, so the same text has the same voice.
    query = Query(arguments.text, "speak", language, arguments.text)
    spoken = arguments.text if arguments.no_spoken_form else spoken_text(arguments.text, language)
    vary = SYNTHESIZERS[arguments.engine].vary
    plan = plan_takes(query, voices, arguments.candidates, vary=vary, seed=arguments.seed)
    takes = speak_takes(engine, query, spoken, plan)
    rated = rate_takes([takes], [query.text], language, ratings)[0] if ratings else [RatedTake(t) for t in takes]
    best = rated[best_take(rated)]
    samples = best.take.samples
    write_bytes(out, wav_bytes(samples) if out.suffix.lower() == ".wav" else encode_flac(samples, str(out)))
    measures = measure_clip(samples, spoken)
    broken = gate(measures, language, engine=engine.spec.engine)
    if arguments.json:
        say_json(
            {
                "file": str(out),
                "text": query.text,
                "spoken_text": spoken,
                "language": language,
                "engine": engine.spec.engine,
                "model": engine.spec.model,
                "revision": engine.spec.revision,
                "license": engine.spec.license,
                "voice": best.take.voice,
                "seed": best.take.seed,
                "duration_s": round(samples.size / SAMPLE_RATE, 3),
                "sample_rate": SAMPLE_RATE,
                "candidates": len(rated),
                "tts_error_rate": number_or_none(best.error_rate),
                "transcript": best.transcript,
                "transcriber": " & ".join(rating.name for rating in ratings),
                "numbers_missed": list(best.missed),
                "measures": measures.as_dict(),
                "gate": list(broken),
            }
        )
        return 0
    say(f"{out}: {samples.size / SAMPLE_RATE:.2f} s, {engine.spec.engine}/{best.take.voice}")
    if spoken != query.text:
        say(f"Spoken form: {spoken}")
    if ratings:
        say(f"Transcript: {best.transcript} (error rate {best.error_rate:.2f})")
    if best.missed:
        say(f"Warning: the transcript lacks {', '.join(best.missed)}.")
    for reason in broken:
        say(f"Warning: {REASONS[reason]}.")
    return 0
