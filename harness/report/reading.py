"""The last part of the report: how to read it, where the numbers come from, what ran where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..results.old import Result
from ..results.files import file_name
from .data import Section
from .formats import UNDEFINED, escape
from .tables import scrollable

_DEFINITIONS = (
    (
        "nDCG@10",
        "Discounted cumulative gain of the first ten documents with linear gain, divided by that of the ideal "
        "ranking of all judged documents, as trec_eval counts it. 1 is perfect. A query that finds nothing scores 0; "
        "a document without judgment counts as not relevant (their number is in the result files).",
    ),
    ("MRR@10", "The mean of 1 / rank of the first relevant document, 0 where none is among the first ten."),
    ("Recall@10", "The share of a query's relevant documents that are among the first ten, averaged over queries."),
    (
        "WER, CER",
        "Substitutions, deletions and insertions, of words or of characters, per reference length, after the "
        "normalizer named above. Corpus: summed errors by summed lengths. Macro: the mean of the queries' own rates. "
        "Languages written without blanks are counted by character. Either may pass 100 %.",
    ),
    (
        "Loss",
        "The baseline's nDCG@10 minus the condition's, over the same queries; relative: divided by the baseline's. "
        "Positive is worse, negative a gain.",
    ),
    (
        "Whose loss it is",
        "What a run falls short of nDCG@10 = 1 splits in two. The retriever's part is what the typed query falls short "
        "of as well; the recognizer's part is the loss against text. The slope is the loss per unit of a query's own "
        "error rate (least squares), the correlation Spearman's rank correlation of the two.",
    ),
    (
        "Names and numbers",
        "Tokens with a digit after normalization, and words written with a capital inside a sentence of the reference. "
        "Scripts without capitals have numbers only.",
    ),
    (
        "95 % interval",
        "Bootstrap over queries; for losses paired, so that a query's difficulty cancels. An interval of a loss that "
        "includes 0 does not show a loss.",
    ),
    (
        "text",
        "The typed query: no audio, no recognizer. It is the upper bound of what a cascade with the same retriever can "
        "be expected to reach.",
    ),
    (
        "SNR",
        "Level of speech over level of noise in dB, over the whole clip. The same query has the same noise at every "
        "level. In a room, speech is reverberated first, then noise is added.",
    ),
    ("RT60", "The time in which sound in the room falls by 60 dB, measured on the impulse response used."),
    (
        "Does a part help?",
        "Two systems that differ in exactly that part, compared query by query (paired bootstrap, sign-flip test, "
        "Holm's correction). What both have in common cancels.",
    ),
    (
        "Partial and imported",
        "Partial runs cover a part of the queries and share no page with full ones. Imported results are another "
        "tool's aggregates: they have a table of their own, without intervals.",
    ),
    (
        "Marks in transcripts",
        "<del>said, not heard</del> and <ins>heard, not said</ins>; both together are a substitution. "
        " They ignore case and punctuation; the error rates ignore what the normalizer ignores.",
    ),
    (
        "Failures",
        "Counted, never turned into text: not decoded, a transcript that loops, cut at the length cap, empty, words on "
        "a silent query, a query that found nothing (it scores 0), and one without a "
        "relevant document (it is left out).",
    ),
)


def how_to_read() -> str:
    """Definitions of everything shown."""
    items = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in _DEFINITIONS)
    return (
        "<p>A cascade is a recognizer followed by a retriever, perhaps behind a front end that cleans the sound; an "
        "end-to-end system searches with the sound itself and has no transcript, so no error rate (–). A query is "
        "typed, spoken in quiet, and spoken in noise or in a room; it is the same query each time, so that the "
        "difference is what the air cost.</p>"
        f'<dl class="definitions">{items}</dl>'
    )


def provenance(sections: Sequence[Section]) -> str:
    """Data, recipe, environment and the result files."""
    results = [run.result for section in sections for run in section.runs]
    parts = [_environment_summary(results), _data_table(results)]
    parts.append(_details("Recipes", _distinct_json(_without_null(result.data.recipe) for result in results)))
    environments = [_environment_json(result) for result in results]
    parts.append(_details("Packages and hardware in full", _distinct_json(environments)))
    names = sorted({f"results/{file_name(r.system.name)}/{r.data.config}.json" for r in results})
    rows = "".join(f"<li><code>{escape(name)}</code></li>" for name in names)
    parts.append(
        _details(
            f"Result files ({len(names)})",
            f"<p>Per-query records lie beside each as .queries.parquet.</p><ul>{rows}</ul>",
        )
    )
    return "".join(parts)


def _data_table(results: Sequence[Result]) -> str:
    rows = dict.fromkeys(
        (
            r.data.language,
            ", ".join(r.data.subsets),
            f"{r.data.source} {r.data.source_version}",
            r.data.revision,
            r.data.license,
            r.data.manifest_sha256,
            f"{r.system.normalizer} {r.system.normalizer_version}",
            r.system.script_folding,
            str(r.seed),
        )
        for r in results
    )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in (
            *("Language", "Subsets", "Source", "Revision", "License", "Manifest sha256"),
            *("Normalizer", "Script folding", "Seed"),
        )
    )
    body = "".join(
        "<tr>" + "".join(f'<td class="id">{escape(cell) or UNDEFINED}</td>' for cell in row) + "</tr>" for row in rows
    )
    return _wide_table("Data and scoring", head, body)


def _wide_table(name: str, head: str, body: str) -> str:
    caption = f"<caption>{escape(name)}</caption>"
    table = f'<table class="wide">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return scrollable(table, name)


def _environment_summary(results: Sequence[Result]) -> str:
    lines = dict.fromkeys(
        f"squtr {r.squtr_version}, Python {r.environment.python}, {r.environment.hardware}, "
        f"{r.environment.threads} thread{'' if r.environment.threads == 1 else 's'}"
        for r in results
    )
    return f"<p class='note'>Made with {escape('; '.join(lines))}.</p>"


def _environment_json(result: Result) -> dict[str, Any]:
    return {"squtr": result.squtr_version, **result.environment.model_dump(mode="json")}


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    return {key: entry for key, entry in value.items() if entry is not None}


def _distinct_json(values: Iterable[dict[str, Any]]) -> str:
    texts = dict.fromkeys(json.dumps(v, ensure_ascii=False, indent=2, sort_keys=True) for v in values)
    return "".join(f'<pre tabindex="0">{escape(text)}</pre>' for text in texts)


def _details(summary: str, body: str) -> str:
    return f'<details class="more"><summary>{escape(summary)}</summary>{body}</details>'
