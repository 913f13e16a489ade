"""The table of benchmarks: a benchmark is a task, a data source and what is measured on it. It is data, not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import unknown_name


@dataclass(frozen=True, slots=True)
class Demo:
    """What `squtr demo --benchmark NAME` runs, on embedded data and packaged weights.

    `conditions` are what is built from `source` with the options `build`; without any, `source` is evaluated as it is.
    `preset` is how transcribers decode, "" as they do by default. An item takes `clips` transcriptions per language; as
    many items are taken as the time allows, in multiples of `step`, at least `fewest`. `next_steps` are commands to go
    on with; `{data}` and `{out}` are filled in.
    """

    systems: tuple[str, ...]
    source: str
    languages: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    build: Mapping[str, Any] = field(default_factory=dict)
    baselines: tuple[str, ...] = ()
    clips: float = 1.0
    step: int = 1
    fewest: int = 1
    preset: str = ""
    next_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A row of the table.

    `task` is a name of `harness.tasks.TASKS`. `source` is the data that is read when no other is named, "" for a user's
    own. `metrics` are names of the registry, the main one first; a name that does not apply to a language (words in
    Chinese) is left out there. `normalizer` is the text normalizer, by language if it is a mapping (`""` is every other
    language). `groups` are the columns that scores and losses are broken down by. `build` are the defaults of
    `squtr build --benchmark NAME`, options of the data's builder by name.
    """

    name: str
    version: str
    task: str
    title: str
    paper: str = ""
    source: str = ""
    metrics: tuple[str, ...] = ()
    normalizer: str | Mapping[str, str] = "default"
    groups: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    build: Mapping[str, Any] = field(default_factory=dict)
    demo: Demo | None = None

    def normalizer_of(self, language: str) -> str:
        if isinstance(self.normalizer, str):
            return self.normalizer
        return self.normalizer.get(language, self.normalizer[""])


_RETRIEVAL = ("ndcg_at_10", "mrr_at_10", "recall_at_10", "wer", "wer_macro", "cer", "cer_macro")
_RECOGNITION = ("wer", "wer_macro", "cer", "cer_macro")
_UNDERSTANDING = ("accuracy",)
_ACOUSTIC_GROUPS = ("noise_family", "rt60_s", "drr_db", "speaker")

BENCHMARKS: Mapping[str, Benchmark] = {
    row.name: row
    for row in (
        Benchmark(
            name="squtr",
            version="1",
            task="retrieval",
            title="SQuTR: spoken query to text retrieval",
            paper="arXiv 2602.12783",
            source="release",
            metrics=_RETRIEVAL,
            groups=("subset", "noise_family", "rt60_s", "drr_db"),
            conditions=("clean", "low_noise", "medium_noise", "high_noise"),
            demo=Demo(
                systems=(
                    "whisper-base + bm25",
                    "whisper-base + dense:all-minilm-l6-v2",
                    "whisper-base + dense:multilingual-e5-small",
                ),
                source="mini",
                languages=("en", "zh", "es"),
                conditions=("clean", "medium_noise", "high_noise", "snr_-5", "reverb", "reverb_high_noise"),
                clips=6,
                step=4,
                fewest=8,
                # The queries of mini are single sentences without a pause.
                preset="fast",
                next_steps=(
                    "squtr build --source mini --conditions clean snr_5 reverb_snr_5 --noise FOLDER --out data",
                    "squtr evaluate 'whisper-base + bm25' --data data --out run",
                    "squtr report run",
                ),
            ),
        ),
        Benchmark(
            name="rir_mega",
            version="1",
            task="recognition",
            title="Whisper-RIR-Mega: the same speech clean and reverberant",
            paper="arXiv 2603.02252",
            source="whisper_rir_mega",
            metrics=_RECOGNITION,
            normalizer={"en": "whisper", "": "default"},
            groups=("rt60_s", "drr_db", "rt60_s|drr_db"),
            conditions=("clean", "reverb"),
            build={
                "source": "librispeech:test-clean",
                "conditions": ("clean", "reverb"),
                "sample_rate": 16_000,
                "rirs": "rir_mega:train",
                "stratify": "rt60",
                "splits": True,
            },
            demo=Demo(
                systems=("whisper-tiny.en", "whisper-base"),
                source="mini",
                languages=("en",),
                conditions=("clean", "reverb"),
                build={"rirs": "simulated", "rirs_per_utterance": 2},
                # Clean once and in two rooms, of the 80 % that are in the test split.
                clips=2.4,
                fewest=20,
                preset="fast",
                next_steps=(
                    "squtr evaluate whisper-base --preset fast --front-end spectral-gate wpe --data {data} --out {out}",
                    "squtr build --benchmark rir_mega --source librispeech:test-clean --out whisper-rir-mega",
                ),
            ),
        ),
        Benchmark(
            name="escucha",
            version="1",
            task="understanding",
            title="ESCUCHA: Spanish audio understanding",
            paper="arXiv 2607.17812",
            source="escucha",
            metrics=_UNDERSTANDING,
            normalizer="",
            groups=("perception", "reasoning", "duration_s"),
            demo=Demo(
                systems=("whisper-base + embedder:multilingual-e5-small",),
                source="questions:mini",
                languages=("es",),
                baselines=("text-only", "shuffled"),
                next_steps=("squtr evaluate chat:MODEL --data questions:mini --baselines text-only --out run",),
            ),
        ),
        Benchmark("retrieval", "1", "retrieval", "Retrieval from spoken queries", metrics=_RETRIEVAL,
                  groups=("subset", *_ACOUSTIC_GROUPS)),
        Benchmark("recognition", "1", "recognition", "Speech recognition", metrics=_RECOGNITION,
                  groups=("subset", *_ACOUSTIC_GROUPS, "rt60_s|drr_db")),
        Benchmark("understanding", "1", "understanding", "Audio understanding", metrics=_UNDERSTANDING, normalizer="",
                  groups=("perception", "reasoning", "duration_s")),
    )
}  # fmt: skip


def benchmark(name: str, table: Mapping[str, Benchmark] = BENCHMARKS) -> Benchmark:
    """The benchmark called `name`. Raises `UnknownNameError` that lists the choices.

    >>> benchmark("squtr").task
    'retrieval'
    """
    if name not in table:
        raise unknown_name("benchmark", name, table)
    return table[name]
