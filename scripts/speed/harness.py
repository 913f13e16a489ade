"""The harness beside the bare engines: what it adds to them, and what it saves.

- transcription: `evaluate`'s first stage with whisper-base (shards, decoding ahead, cache) beside the same batches
  given to CTranslate2 alone, features included, audio decoded before;
- reading: shards read from a built folder, decoded, resampled and hashed, beside soundfile and soxr alone on the same
  files in memory, as many threads for both;
- grid: 3 transcribers × 4 retrievers × 5 conditions with MiniLM on one corpus, evaluated together, beside embedding the
  corpus for every cell, as a loop over systems and conditions would (4 of the 60 cells are run, and scaled up);
- dense search, embedding: see `dense_search.py`; BM25 and Chinese words: see `lexical.py`. Both run here too.

Contenders take turns in one process. Processor time counts, all threads together, so that what else runs on the machine
disturbs little, and of the rounds the median.

    python scripts/speed/harness.py [--rounds 3] [--clips 32] [--only transcription]
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from squtr.harness.benchmarks import benchmark
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.components.transcribers.faster_whisper import FasterWhisperTranscriber
from squtr.harness.components.transcribers.presets import preset
from squtr.harness.evaluate import evaluate
from squtr.harness.evaluation.cells import infer_cells
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.plan import make_plan
from squtr.harness.evaluation.shards import DECODERS, load_shards, read_shards
from squtr.harness.evaluation.task import Request
from squtr.harness.evaluation.tools import keep_nothing, open_tools
from squtr.harness.processes import Alone
from squtr.harness.protocols import ComponentSpec, Transcript
from squtr.harness.systems.system import System
from squtr.loaders.audio import resample
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe

SECTIONS = ("transcription", "reading", "grid", "dense", "lexical")
RATE = 16_000
BATCH = 4


def medians(rounds: int, *work: Callable[[], object]) -> list[float]:
    """Median processor seconds of each, run in turns."""
    taken: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for place, one in enumerate(work):
            started = time.process_time()
            one()
            taken[place].append(time.process_time() - started)
    return [statistics.median(own) for own in taken]


def built(folder: Path, *, languages: Sequence[str], conditions: Sequence[str], limit: int) -> BuiltData:
    """Clips of `mini`, built into a folder."""
    build(open_recipe("mini", conditions=conditions, languages=languages, limit=limit), folder)
    return BuiltData(folder)


def transcription(rounds: int, clips: int, folder: Path) -> None:
    """The first stage beside CTranslate2 alone."""
    import ctranslate2
    from faster_whisper import WhisperModel
    from faster_whisper.audio import pad_or_trim
    from faster_whisper.tokenizer import Tokenizer
    from faster_whisper.transcribe import get_suppressed_tokens

    from squtr.harness.components.weights import find_weights

    data = built(folder / "transcription", languages=["en"], conditions=["clean"], limit=clips)
    transcriber = FasterWhisperTranscriber(
        "whisper-base", threads=2, batch_size=BATCH, **preset("fast", "faster-whisper")
    )
    system = System(transcriber=transcriber)
    found = find_weights("whisper-base")
    model = WhisperModel(str(found.path), device="cpu", compute_type="int8", cpu_threads=2)
    tokenizer = Tokenizer(model.hf_tokenizer, True, task="transcribe", language="en")
    prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
    rows = sorted(data.spoken("mini-en", "clean"), key=lambda q: (-q.duration_s, q.id))
    clips_16k = []
    for row in rows:
        samples, rate = soundfile.read(io.BytesIO(row.audio), dtype="float32")
        clips_16k.append(resample(samples, rate, RATE))
    found_texts: dict[str, list[str]] = {}

    def bare() -> None:
        texts = []
        for start in range(0, len(clips_16k), BATCH):
            batch = clips_16k[start : start + BATCH]
            features = np.stack([pad_or_trim(model.feature_extractor(s)[:, :-1]) for s in batch])
            results = model.model.generate(
                ctranslate2.StorageView.from_array(np.ascontiguousarray(features, dtype=np.float32)),
                [prompt] * len(batch),
                beam_size=1,
                max_length=448,
                suppress_tokens=get_suppressed_tokens(tokenizer, [-1]),
                suppress_blank=True,
                return_scores=True,
            )
            texts += [tokenizer.decode(r.sequences_ids[0]).strip() for r in results]
        found_texts["bare"] = texts

    number = iter(range(1000))

    def harness() -> None:
        plan = make_plan(Request([system], data, benchmark("recognition"), ["en_clean"], Options()))
        tools = open_tools(Alone(), folder / f"cache{next(number)}")
        (outputs,) = infer_cells(plan, tools).values()
        by_id = {one.row.id: one.transcript.text for one in outputs.of(("mini-en", "clean"))}
        found_texts["harness"] = [by_id[row.id] for row in rows]

    bare()
    harness()
    alone, through = medians(rounds, bare, harness)
    same = found_texts["bare"] == found_texts["harness"]
    print(f"transcription, {len(clips_16k)} clips: CTranslate2 alone {alone:.2f} s, harness {through:.2f} s")
    print(f"  harness / CTranslate2: {through / alone:.3f} (aim 1.03), transcripts {'equal' if same else 'DIFFER'}")


def reading(rounds: int, folder: Path) -> None:
    """Shards beside bare decoding."""
    data = built(folder / "reading", languages=["en", "zh", "es"], conditions=["clean", "high_noise"], limit=0)
    cells = [(subset, condition) for subset in data.subsets for condition in data.conditions]
    files = [query.audio for cell in cells for query in data.spoken(*cell)]

    def decode(content: bytes) -> int:
        samples, rate = soundfile.read(io.BytesIO(content), dtype="float32")
        return int(soxr.resample(samples, rate, RATE, quality="VHQ").size)

    def bare() -> None:
        with ThreadPoolExecutor(DECODERS) as pool:
            list(pool.map(decode, files))

    def harness() -> None:
        for cell in cells:
            shards = read_shards(data, cell, data.queries(cell[0]), own=lambda _: True, keep=keep_nothing)
            for _ in load_shards(shards, rate=RATE, known_clips=lambda _: {}, known_transcripts=lambda _: {}):
                pass

    bare()
    alone, through = medians(rounds, bare, harness)
    print(f"reading, {len(files)} clips: decoding alone {alone:.2f} s, harness {through:.2f} s")
    print(f"  harness / decoding: {through / alone:.2f} (aim 1.3)")


class Oracle:
    """A transcriber that knows the references."""

    sample_rate = RATE

    def __init__(self, name: str, texts: dict[int, str]) -> None:
        self.spec = ComponentSpec("transcriber", "oracle", name, revision=name)
        self._texts = texts

    def supports(self, language: str) -> bool:
        return language == "en"

    def transcribe(self, clips: Sequence[np.ndarray[Any, Any]], *, language: str) -> list[Transcript]:
        """A text by the length of the clip."""
        return [Transcript(self._texts.get(clip.size, "a text")) for clip in clips]


def grid(rounds: int, folder: Path) -> None:
    """A grid beside a loop over its cells."""
    conditions = ["clean", "low_noise", "medium_noise", "high_noise", "reverb"]
    data = built(folder / "grid", languages=["en"], conditions=conditions, limit=16)
    texts = {
        soxr.resample(soundfile.read(io.BytesIO(q.audio))[0], 24_000, RATE).size: q.text
        for q in data.spoken("mini-en", "clean")
    }
    names = ["one", "two", "three"]
    prompts = ["", "query: ", "passage: ", "text: "]
    loaded = [DenseRetriever("all-minilm-l6-v2", document_prompt=prompt) for prompt in prompts]
    for retriever in loaded:
        retriever.index(list(data.documents("mini-en"))[:2], language="en")
    options: dict[str, Any] = {"resamples": 10, "samples": 0}

    def together() -> None:
        systems = [
            System(transcriber=Oracle(f"{n} {i}", texts), retriever=r, display_name=f"{n} {i}")
            for n in names
            for i, r in enumerate(loaded)
        ]
        evaluate(systems, data=data, configs=[f"en_{c}" for c in conditions], **options)

    def separately() -> None:
        for place, retriever in enumerate(loaded):
            system = System(transcriber=Oracle(f"one {place}", texts), retriever=retriever, display_name=f"one {place}")
            evaluate([system], data=data, configs=["en_clean"], **options)

    once, column = medians(rounds, together, separately)
    every = column * len(names) * len(conditions)
    size = len(data.documents("mini-en"))
    print(f"grid of 3 × 4 × 5, corpus of {size}: together {once:.2f} s, cell by cell {every:.2f} s (scaled)")
    print(f"  cell by cell / together: {every / once:.1f}")


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clips", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "transcription" in arguments.only:
            transcription(arguments.rounds, arguments.clips, folder)
        if "reading" in arguments.only:
            reading(arguments.rounds, folder)
        if "grid" in arguments.only:
            grid(1, folder)
    here = Path(__file__).parent
    for section, file in (("dense", "dense_search.py"), ("lexical", "lexical.py")):
        if section in arguments.only:
            sys.stdout.flush()
            subprocess.run([sys.executable, str(here / file), "--rounds", str(arguments.rounds)], check=True)


if __name__ == "__main__":
    main()
