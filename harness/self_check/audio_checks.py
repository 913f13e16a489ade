"""Whether what takes audio uses it: transcribers, front ends, encoders of audio and text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...errors import AudioError
from ..components import checked
from ..components.raised import sentences
from ..metrics.error_counts import count_texts, default_unit
from ..protocols import AudioTextEncoder, FrontEnd, Transcriber
from ..text.languages import is_written_without_spaces
from ..text.normalizers import load_normalizer
from .calibration import Calibration
from .finding import NO_AUDIO, NOT_LOADED, Finding, failed, rounded
from .text_checks import POOR, above_irrelevant, check_vectors, shares_of

# Other sentences of the same language have a WER (zh: CER) of 0.9 and more, and a CER of 0.65 and more. A transcriber
# above both on every clip wrote nothing of what was spoken.
_NOTHING_RIGHT, _NO_LETTERS_RIGHT = 0.9, 0.6
POOR_RATE = 0.5
# A model that ignores audio gives the same vector, up to rounding in half precision; speech of others differs by more.
_SAME_VECTOR = 1e-5
_POOR_NEARNESS = 0.7
_SILENT_DB = -60.0
_UNLIKE, _POOR_LIKENESS = 0.1, 0.7
_FRAME_S = 0.02


def check_transcriber(transcriber: Transcriber, items: Calibration) -> Finding:
    """The error rate on clean clips. Raises what the transcriber raises."""
    language = items.language
    clips = items.clips(transcriber.sample_rate)
    transcripts = checked.transcribe(transcriber, clips, language=language)
    errors = [one.error for one in transcripts if one.error]
    if len(errors) == len(clips):
        return failed(f"all {len(clips)} clips failed, the first with: {errors[0]}", "what the error says")
    normalize = load_normalizer("default", language)
    texts = [normalize(one.text) for one in transcripts]
    if not any(text.strip() for text in texts):
        return failed(f"the transcripts of {len(clips)} spoken clips are empty", f"{NOT_LOADED}, or {NO_AUDIO}")
    unit = default_unit(language)
    rates, letters = _rates(items, texts, unit), _rates(items, texts, "char")
    measure = "cer" if unit == "char" else "wer"
    seen = {measure: rounded(sum(rates) / len(rates))}
    written = f"{measure.upper()} {seen[measure]:.2f} on {len(clips)} clean clips in {language!r}"
    if not errors and len(set(texts)) == 1:
        return failed(f"{len(clips)} clips of other sentences gave the same text {texts[0][:60]!r}", NO_AUDIO, **seen)
    if all(w >= _NOTHING_RIGHT and c >= _NO_LETTERS_RIGHT for w, c in zip(rates, letters, strict=True)):
        return failed(f"{written}: {texts[0][:60]!r} for {items.texts[0]!r}", _why_wrong(items, texts), **seen)
    flaws = [f"{len(errors)} failed: {errors[0]}"] if errors else []
    if empty := sum(not text.strip() for text in texts) - len(errors):
        flaws.append(f"{empty} empty")
    if loops := sum(one.loop for one in transcripts):
        flaws.append(f"{loops} in a loop")
    if flaws or seen[measure] > POOR_RATE:
        return Finding("poor", seen, "; ".join([written, *flaws]))
    return Finding("passed", seen, written)


def _rates(items: Calibration, texts: Sequence[str], unit: str) -> list[float]:
    normalize = load_normalizer("default", items.language)
    expected = [normalize(text) for text in items.texts]
    return [one.rate for one in count_texts(expected, texts, unit=unit, language=items.language)]  # type: ignore[arg-type]


def _why_wrong(items: Calibration, texts: Sequence[str]) -> str:
    """The likely cause of transcripts that are all wrong."""
    unit = default_unit(items.language)
    turned = [_rates(items, [*texts[i:], *texts[:i]], unit) for i in range(1, len(texts))]
    if any(max(rates) < POOR_RATE for rates in turned):
        return "transcripts in another order than the clips"
    ideographs = sum("\u4e00" <= sign <= "\u9fff" for text in texts for sign in text)
    share = ideographs / max(1, sum(map(len, texts)))
    if is_written_without_spaces(items.language) != (share > 0.5):
        return "a wrong language prompt, or translation: the text is in another script"
    return f"{NOT_LOADED}, a wrong language prompt, or another tokenizer than the model's"


def check_front_end(front_end: FrontEnd, items: Calibration) -> Finding:
    """Clean speech must come back as long, finite, audible and alike."""
    name = front_end.spec.name
    clips = items.clips(front_end.sample_rate)
    enhanced: list[NDArray[np.float32]] = []
    for clip in clips:
        try:
            with sentences(f"{name} on a clip of the self-check"):
                enhanced += front_end.enhance([clip])
        except AudioError as error:
            return failed(f"clean speech failed with: {error.message}", "what the error says")
    if [len(one) for one in enhanced] != [len(one) for one in clips]:
        return failed("clips came back with another length", "a delay or a cut that is not made up for")
    if not all(np.isfinite(one).all() for one in enhanced):
        return failed("clips came back with samples that are not finite", NOT_LOADED)
    levels = [_level_db(after) - _level_db(before) for before, after in zip(clips, enhanced, strict=True)]
    if max(levels) < _SILENT_DB:
        return failed("clean speech came back silent", NOT_LOADED, level_db=rounded(max(levels)))
    rate = front_end.sample_rate
    alike = [_envelope_correlation(a, b, rate) for a, b in zip(clips, enhanced, strict=True)]
    seen = {"level_db": rounded(float(np.mean(levels))), "likeness": rounded(float(np.mean(alike)))}
    note = f"the loudness over time of clean speech correlates by {seen['likeness']:.2f} with what came back"
    if max(alike) < _UNLIKE:
        return failed(note, f"{NOT_LOADED}, or clips in another order", **seen)
    return Finding("poor" if min(alike) < _POOR_LIKENESS else "passed", seen, note)


def _level_db(clip: NDArray[np.float32]) -> float:
    return 20 * math.log10(max(float(np.sqrt(np.mean(np.square(clip, dtype=np.float64)))), 1e-12))


def _envelope_correlation(a: NDArray[np.float32], b: NDArray[np.float32], rate: int) -> float:
    """Pearson's correlation of the root-mean-square of frames; 0 where one is constant."""
    frame = round(rate * _FRAME_S)
    n = len(a) // frame * frame
    rows = [np.sqrt(np.square(clip[:n].reshape(-1, frame), dtype=np.float64).mean(axis=1)) for clip in (a, b)]
    if min(float(row.std()) for row in rows) == 0:
        return 0.0
    return float(np.corrcoef(*rows)[0, 1])


def check_audio_encoder(encoder: AudioTextEncoder, items: Calibration) -> Finding:
    """Clips of one length must have different vectors, and each be nearer to its own text than to others.

    That they are near is hard for a model that was made for other audio than speech: it is at most poor without.
    """
    name, language = encoder.spec.name, items.language
    clips = items.equal_clips(encoder.sample_rate)
    others = [text for text in items.queries if text not in items.texts]
    with sentences(f"{name} on the clips and texts of the self-check in {language!r}"):
        audio = np.asarray(encoder.encode_audio(clips, language=language), dtype=np.float64)
        texts = np.asarray(encoder.encode([*items.texts, *others], role="document"), dtype=np.float64)
    for vectors, n, what in ((audio, len(clips), "clips"), (texts, len(items.texts) + len(others), "texts")):
        broken = check_vectors(vectors, n, what)
        if broken is not None:
            return broken
    distance = max(1 - float(audio[i] @ audio[j]) for i, j in combinations(range(len(clips)), 2))
    seen = {"largest_distance": round(distance, 6)}
    if distance < _SAME_VECTOR:
        note = f"{len(clips)} clips of other sentences have the same vector: the largest distance is {distance:.1e}"
        return failed(note, NO_AUDIO, **seen)
    scores = audio @ texts.T
    own = float(np.mean([above_irrelevant(row[i], np.delete(row, i)) for i, row in enumerate(scores)]))
    seen["own_text_above_others"] = rounded(own)
    # A text tower of captions finds passages poorly.
    found = float(np.mean(_typed_search(encoder, items)))
    seen["above_irrelevant"] = rounded(found)
    notes = []
    if own < _POOR_NEARNESS:
        notes.append(f"a clip is nearer to its own text than to {own:.0%} of others in {language!r}; 50% is chance")
    if found < POOR:
        notes.append(f"typed queries rank their passage above {found:.0%} of the others; 50% is chance")
    if not notes:
        return Finding("passed", seen, f"a clip is nearer to its own text than to {own:.0%} of others in {language!r}")
    return Finding("poor", seen, "; ".join(notes))


def _typed_search(encoder: AudioTextEncoder, items: Calibration) -> list[float]:
    """How the typed queries rank their passages (`above_irrelevant`)."""
    with sentences(f"{encoder.spec.name} on the texts of the self-check in {items.language!r}"):
        queries = np.asarray(encoder.encode(list(items.queries), role="query"), dtype=np.float64)
        contents = [passage.contents for passage in items.passages]
        passages = np.asarray(encoder.encode(contents, role="document"), dtype=np.float64)
    return shares_of(queries @ passages.T, items)
