"""Whether replies depend on what was spoken, and whether a rewriter gives texts back."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from ..components import checked
from ..metrics.error_counts import count_texts
from ..protocols import Answerer, AnswerRequest, Rewriter
from .audio_checks import POOR_RATE
from .calibration import QUESTIONS, Calibration
from .finding import NO_AUDIO, NOT_LOADED, Finding, failed, rounded

_ALIKE = 0.5


def check_answerer(answerer: Answerer, items: Calibration, *, with_audio: bool) -> Finding:
    """Which of three sentences a clip (or its transcript) says, and to repeat it: by the same prompt for every clip.

    The clips are of equal length: replies that differ come from what is in them.
    """
    language = items.language
    asked = _requests(answerer, items, with_audio=with_audio)
    replies = checked.answer(answerer, asked)
    errors = [one.error for one in replies if one.error]
    if len(errors) == len(asked):
        return failed(f"all {len(asked)} requests failed, the first with: {errors[0]}", "what the error says")
    texts = [one.text.strip() for one in replies]
    if not any(texts):
        return failed(f"all {len(asked)} replies are empty", NOT_LOADED)
    n = len(items.texts)
    choices, repeated = texts[:n], texts[n:]
    right = sum(chosen(text, items.texts) == i for i, text in enumerate(choices))
    seen = {"right": rounded(right / n)}
    what = "clips" if with_audio else "transcripts"
    if not errors and len(set(choices)) == len(set(repeated)) == 1:
        note = f"{n} different {what} gave the same replies: {choices[0][:60]!r}, {repeated[0][:60]!r}"
        return failed(note, NO_AUDIO if with_audio else "a prompt without the transcript", **seen)
    note = f"{right} of {n} questions about {what} in {language!r} answered right"
    if errors:
        note += f"; {len(errors)} failed: {errors[0]}"
    return Finding("passed" if right == n and not errors else "poor", seen, note)


def _requests(answerer: Answerer, items: Calibration, *, with_audio: bool) -> list[AnswerRequest]:
    question = QUESTIONS[items.language]
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(string.ascii_uppercase, items.texts, strict=False))
    clips = items.equal_clips(answerer.sample_rate) if with_audio else [None] * len(items.texts)
    made = []
    for written, asked, options in (
        (f"{question.choice}\n{listed}", question.choice, tuple(items.texts)),
        (question.repeat, question.repeat, ()),
    ):
        for clip, text in zip(clips, items.texts, strict=True):
            prompt = written if clip is not None else f"{question.transcript} {text}\n\n{written}"
            made.append(
                AnswerRequest(
                    prompt,
                    audios=() if clip is None else (clip,),
                    audio_names=() if clip is None else ("",),
                    question=asked,
                    options=options,
                    transcripts=(text,) if clip is None else (),
                    language=items.language,
                )
            )
    return made


def chosen(reply: str, options: Sequence[str]) -> int:
    """The place of the option that a reply means: a letter alone or first, else the one whose text it has; -1 for none.

    >>> chosen("B.", ["river", "lamp"]), chosen("The lamp.", ["river", "lamp"]), chosen("?", ["river", "lamp"])
    (1, 1, -1)
    """
    letters = string.ascii_uppercase[: len(options)]
    found = re.match(rf"\W*([{letters}])(?![^\W\d_])", reply) or re.search(rf"(?<!\w)([{letters}])[).:]", reply)
    if found:
        return letters.index(found[1])
    from rapidfuzz import fuzz

    scores = [fuzz.partial_ratio(option.casefold(), reply.casefold()) / 100 for option in options]
    best = max(scores)
    return scores.index(best) if best > _ALIKE and scores.count(best) == 1 and reply.strip() else -1


def check_rewriter(rewriter: Rewriter, items: Calibration) -> Finding:
    """Text must come back for correct texts. One that writes much more is poor: a rewriter may be made to."""
    language = items.language
    found = checked.rewrite(rewriter, [[text] for text in items.texts], language=language)
    errors = [one.error for one in found if one.error]
    if len(errors) == len(found):
        return failed(f"all {len(found)} texts failed, the first with: {errors[0]}", "what the error says")
    texts = [one.text.strip() for one in found]
    if not any(texts):
        return failed(f"all {len(found)} rewritten texts are empty", NOT_LOADED)
    if not errors and len(set(texts)) == 1:
        return failed(
            f"{len(found)} different texts became the same: {texts[0][:60]!r}", "a prompt without the transcript"
        )
    rates = [one.rate for one in count_texts(items.texts, texts, unit="char", language=language)]
    seen = {"changed": rounded(sum(rates) / len(rates))}
    note = f"{seen['changed']:.0%} of the characters of correct texts in {language!r} were changed"
    if errors:
        note += f"; {len(errors)} failed: {errors[0]}"
    return Finding("poor" if errors or max(rates) > POOR_RATE else "passed", seen, note)
