"""Error rates of squtr for the `evaluate` library: `evaluate.load("<this folder>")`.

The library copies this file and imports the copy, so it imports squtr by its full name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate  # type: ignore[import-not-found,import-untyped,unused-ignore]

from squtr.errors import DataError
from squtr.harness.metrics.summaries import summarize_recognition
from squtr.harness.text.normalizers import load_normalizer

_DESCRIPTION = """WER and CER after squtr's normalizers, as corpus rates (errors by reference length) and as means of
the utterances' own rates, with counts of substitutions, deletions, insertions, loops, hallucinations (words
unrelated to the reference), and empty transcripts."""
_INPUTS = """
Args:
    predictions: transcripts, either texts, joined with the references by position, or {"id", "text"}, joined by id.
    references: the right texts, in the same form.
    language: code of the language, for example "en", "zh", "es" (required).
    unit: "word", "char" or "mixed" (the language's customary one).
    normalizer: "default", "raw", "whisper" or "squtr-compat" ("default").
    seed, resamples: of the 95 % bootstrap intervals (0, 1000).
Returns:
    wer, wer_macro, cer, cer_macro, mer (match error rate), substitutions, deletions, insertions, reference_length, n,
    loops, hallucinations, empty, intervals; None where something does not apply.
"""
_CITATION = """Morris, Maier and Green: From WER and RIL to MER and WIL. Interspeech 2004."""


class SpokenRecognition(evaluate.Metric):  # type: ignore[misc,unused-ignore]
    """Error rates of transcripts."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        named = {"id": datasets.Value("string"), "text": datasets.Value("string")}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": text, "references": text}),
                datasets.Features({"predictions": named, "references": named}),
            ],
        )

    def _compute(
        self,
        predictions: Sequence[Any],
        references: Sequence[Any],
        *,
        language: str,
        unit: Any = None,
        normalizer: str = "default",
        seed: int = 0,
        resamples: int = 1000,
    ) -> dict[str, Any]:
        return summarize_recognition(
            _by_id(references, "references"),
            _by_id(predictions, "predictions"),
            language=language,
            normalizer=load_normalizer(normalizer, language),
            unit=unit,
            seed=seed,
            resamples=resamples,
        ).scores


def _by_id(rows: Sequence[Any], what: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for position, row in enumerate(rows):
        named = isinstance(row, Mapping)
        id_ = row["id"] if named else str(position)
        if id_ in texts:
            raise DataError(f"id {id_!r} stands twice in the {what}.", hint="Give each id once.")
        texts[id_] = row["text"] if named else row
    return texts
