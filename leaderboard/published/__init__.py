"""Published numbers as entries: facts from the papers, not scored again here."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from statistics import fmean

from ...harness.results.envelope import Loss, Score
from ..entry import Coverage, Entry, Model, content_sha256, hub_link

SQUTR_PAPER = "arXiv 2602.12783"
RIR_MEGA_PAPER = "arXiv 2603.02252"
NOTE = "Published, not re-scored."

SUBSETS: Mapping[str, tuple[str, str, int]] = {
    "FiQA": ("fiqa", "en", 648),
    "HotpotQA": ("hotpotqa", "en", 7_405),
    "NQ": ("nq", "en", 3_452),
    "DuRetrieval": ("duretrieval", "zh", 2_000),
    "MedicalRetrieval": ("medicalretrieval", "zh", 1_000),
    "T2Retrieval": ("t2retrieval", "zh", 22_812),
}
"""Published name to subset, language and number of queries (SQuTR, tables 1 and 10 to 21)."""


@dataclass(frozen=True, slots=True)
class Subset:
    """A published subset: its language, and how many queries it has."""

    language: str
    queries: int


PUBLISHED_SUBSETS: Mapping[str, Mapping[str, Subset]] = {
    "squtr": {subset: Subset(language, n) for subset, language, n in SUBSETS.values()}
}
"""By benchmark and subset, where results of it must have just these queries."""
CONDITIONS: Mapping[str, str] = {
    "text": "text",
    "clean": "clean",
    "snr20": "low_noise",
    "snr10": "medium_noise",
    "snr0": "high_noise",
}
METRICS: Mapping[str, str] = {"ndcg@10": "ndcg_at_10", "mrr@10": "mrr_at_10", "recall@10": "recall_at_10"}
END_TO_END = frozenset({"Omni-Embed-Nemotron-3B"})
"""Systems that take the audio themselves: the transcriber of their table does not work for them."""

_MODELS: Mapping[str, str] = {
    "Whisper-Tiny": "openai/whisper-tiny", "Whisper-Base": "openai/whisper-base",
    "Whisper-Small": "openai/whisper-small", "Whisper-Medium": "openai/whisper-medium",
    "Whisper-Large-v3": "openai/whisper-large-v3", "Qwen3-ASR-1.7B": "Qwen/Qwen3-ASR-1.7B",
    "Qwen3-Embedding-0.6B": "Qwen/Qwen3-Embedding-0.6B", "Qwen3-Embedding-4B": "Qwen/Qwen3-Embedding-4B",
    "Qwen3-Embedding-8B": "Qwen/Qwen3-Embedding-8B", "BGE-M3-dense": "BAAI/bge-m3",
    "Multilingual-E5-Large": "intfloat/multilingual-e5-large", "EmbeddingGemma-300M": "google/embeddinggemma-300m",
    "All-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "Omni-Embed-Nemotron-3B": "nvidia/omni-embed-nemotron-3b",
}  # fmt: skip
_SPELLINGS = {"whisper-large-v3": "Whisper-Large-v3", "paraformer-large": "Paraformer-Large"}

_SENSE_VOICE = {"clean": ".3759", "low_noise": ".3757", "medium_noise": ".3699", "high_noise": ".3436"}


@dataclass(frozen=True, slots=True)
class Value:
    """One published number."""

    table: str
    subset: str
    language: str
    transcriber: str
    retriever: str
    condition: str
    metric: str
    value: float


def citation(benchmark: str) -> str:
    """Whom to cite for a published benchmark, as BibTeX; "" for others."""
    file = resources.files(__package__) / f"{benchmark}.bib"
    return file.read_text(encoding="utf-8").strip() if benchmark.isidentifier() and file.is_file() else ""


def squtr_values() -> Iterator[Value]:
    """The 2,070 numbers of tables 10 to 21 of SQuTR."""
    text = resources.files(__package__).joinpath("squtr.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        subset, language, _ = SUBSETS[row["dataset"]]
        yield Value(
            row["table"],
            subset,
            language,
            _SPELLINGS.get(row["asr"], row["asr"]),
            row["retriever"],
            CONDITIONS[row["condition"]],
            METRICS[row["metric"]],
            float(row["value"]),
        )


def squtr_entries() -> list[Entry]:
    """One entry per published system; a language's scores are the unweighted mean of its three subsets.

    Errata of the publication stand on their numbers, in `errata`.
    """
    systems: dict[tuple[str, str], list[Value]] = {}
    for value in squtr_values():
        transcriber = "" if value.retriever in END_TO_END else value.transcriber
        systems.setdefault((transcriber, value.retriever), []).append(value)
    return [_squtr_entry(transcriber, retriever, values) for (transcriber, retriever), values in systems.items()]


def _squtr_entry(transcriber: str, retriever: str, values: list[Value]) -> Entry:
    scores, coverage, disagreements = _scores(values)
    scores |= _means(scores, coverage)
    name = f"{transcriber} + {retriever}" if transcriber else retriever
    components = (
        {"transcriber": {"name": transcriber}, "retriever": {"name": retriever}}
        if transcriber
        else {"encoder": {"name": retriever}}
    )
    return Entry(
        id=content_sha256(["published", "squtr", name])[:16],
        task="retrieval",
        benchmark="squtr",
        benchmark_version=f"as published ({SQUTR_PAPER})",
        main_metric="ndcg_at_10",
        system=name,
        kind="cascade" if transcriber else "end-to-end",
        who="published",
        scores=scores,
        coverage=coverage,
        aspects={"source": "published", "revision": SQUTR_PAPER},
        losses=_losses(scores),
        components=components,
        models=tuple(_model(role, str(spec["name"])) for role, spec in components.items()),
        source="release",
        source_version=SQUTR_PAPER,
        date="2026-02",
        errata={**disagreements, **_errata(transcriber, retriever)},
        notes=(NOTE, f"Tables {', '.join(sorted({v.table for v in values}, key=int))} of {SQUTR_PAPER}."),
    )


def _model(role: str, name: str) -> Model:
    full = _MODELS.get(name, "")
    return Model(role, name, link=hub_link(full))


def _scores(values: list[Value]) -> tuple[dict[str, dict[str, Score]], dict[str, Coverage], dict[str, str]]:
    """Scores by config of a subset; a number that two tables print differently is the first's, with an erratum."""
    sizes = {subset: n for subset, _, n in SUBSETS.values()}
    scores: dict[str, dict[str, Score]] = {}
    coverage: dict[str, Coverage] = {}
    errata: dict[str, str] = {}
    for v in sorted(values, key=lambda value: int(value.table)):
        config, n = f"{v.subset}_{v.condition}", sizes[v.subset]
        known = scores.setdefault(config, {}).get(v.metric)
        if known is not None:
            if known.value != v.value:
                errata[f"{config}/{v.metric}"] = f"Another table ({v.table}) prints {v.value:.4f}."
            continue
        scores[config][v.metric] = Score(value=v.value, n=n)
        coverage[config] = Coverage(n, n, False, v.language, v.condition, (v.subset,))
    return scores, coverage, errata


def _means(scores: Mapping[str, Mapping[str, Score]], coverage: dict[str, Coverage]) -> dict[str, dict[str, Score]]:
    """Scores by config of a language that has all of its subsets, and their coverage."""
    found: dict[str, dict[str, Score]] = {}
    for language in dict.fromkeys(language for _, language, _ in SUBSETS.values()):
        own = [(subset, n) for subset, code, n in SUBSETS.values() if code == language]
        for condition in CONDITIONS.values():
            parts = [scores.get(f"{subset}_{condition}") for subset, _ in own]
            if any(part is None for part in parts):
                continue
            total = sum(n for _, n in own)
            metrics = [part for part in parts if part is not None]
            found[f"{language}_{condition}"] = {
                metric: Score(value=fmean(part[metric].value or 0.0 for part in metrics), n=total)
                for metric in METRICS.values()
                if all(metric in part for part in metrics)
            }
            coverage[f"{language}_{condition}"] = Coverage(
                total, total, False, language, condition, tuple(subset for subset, _ in own)
            )
    return found


def _losses(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, dict[str, Loss]]]:
    """What is lost against `clean` and `text` of the same scope: differences of means, without intervals."""
    found: dict[str, dict[str, dict[str, Loss]]] = {}
    for config, metrics in scores.items():
        scope, _, condition = config.partition("_")
        for baseline in ("clean", "text"):
            base = scores.get(f"{scope}_{baseline}")
            if base is None or condition in {baseline, "text"}:
                continue
            for metric, score in metrics.items():
                before, after = base[metric].value if metric in base else None, score.value
                if before is None or after is None:
                    continue
                lost = before - after
                loss = Loss(
                    absolute=Score(value=lost, n=score.n),
                    relative=Score(value=lost / before if before else None, n=score.n),
                )
                found.setdefault(config, {}).setdefault(baseline, {})[metric] = loss
    return found


def _errata(transcriber: str, retriever: str) -> dict[str, str]:
    """What the publication itself gets wrong: shown, not mended."""
    found: dict[str, str] = {}
    if (transcriber, retriever) == ("SenseVoice-Small", "BM25"):
        for condition, printed in _SENSE_VOICE.items():
            found[f"en_{condition}/ndcg_at_10"] = (
                f"Table 6 prints {printed}; the tables of the three subsets give this mean."
            )
    if (transcriber, retriever) == ("Paraformer-Large", "BM25"):
        found["medicalretrieval_high_noise/recall_at_10"] = (
            "Recall below nDCG is impossible with one relevant passage per query."
        )
    return found


@dataclass(frozen=True, slots=True)
class _Claim:
    """What one publication says of one model: WER in the open and in the room, and the difference, in points."""

    model: str
    delta: float
    clean: float | None = None


_ABSTRACT = (_Claim("whisper-tiny", 1.07), _Claim("whisper-small", 0.12), _Claim("whisper-medium", 0.15))
_QUOTED = (
    _Claim("whisper-tiny", 15.50, 54.88),
    _Claim("whisper-small", 7.4),
    _Claim("whisper-medium", 5.9),
    _Claim("whisper-large-v3", 2.31),
)


def rir_mega_entries() -> list[Entry]:
    """The two published sets of Whisper-RIR-Mega, which contradict each other: shown as such, outside the ranking."""
    stated = {
        "abstract": (_ABSTRACT, "The abstract says 0.12 to 1.07 points; other published numbers say 2.3 to 15.5."),
        "quoted": (
            _QUOTED,
            "Quoted by others from the paper's page: 2.3 to 15.5 points; the abstract says 0.12 to 1.07.",
        ),
    }
    found = []
    for version, (claims, note) in stated.items():
        for claim in claims:
            lost = Score(value=claim.delta / 100, n=1_600)
            clean = None if claim.clean is None else claim.clean / 100
            relative = None if not clean else claim.delta / 100 / clean
            scores: dict[str, dict[str, Score]] = {"en_reverb": {}}
            if clean is not None:
                scores["en_clean"] = {"wer": Score(value=clean, n=1_600)}
                scores["en_reverb"] = {"wer": Score(value=clean + claim.delta / 100, n=1_600)}
            entry = Entry(
                id=content_sha256(["published", "rir_mega", version, claim.model])[:16],
                task="recognition",
                benchmark="rir_mega",
                benchmark_version=f"as published ({RIR_MEGA_PAPER}, {version})",
                system=claim.model,
                kind="transcriber",
                who="published",
                main_metric="wer",
                scores=scores,
                coverage={
                    f"en_{condition}": Coverage(1_600, 1_600, False, "en", condition)
                    for condition in ("clean", "reverb")
                },
                losses={"en_reverb": {"clean": {"wer": Loss(absolute=lost, relative=Score(value=relative, n=1_600))}}},
                aspects={"source": "published", "revision": f"{RIR_MEGA_PAPER}, {version}"},
                components={"transcriber": {"name": claim.model}},
                models=(Model("transcriber", claim.model, link=hub_link(f"openai/{claim.model}")),),
                source_version=RIR_MEGA_PAPER,
                date="2026-03",
                errata={"en_reverb/wer": note},
                notes=(NOTE, note, f"Published loss against clean: {claim.delta:g} points of WER."),
                ranked=False,
            )
            found.append(entry)
    return found


def published_entries() -> list[Entry]:
    """All published entries, those of SQuTR first."""
    return [replace(entry) for entry in (*squtr_entries(), *rir_mega_entries())]
