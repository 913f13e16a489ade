"""What the numbers mean."""

from __future__ import annotations

_DEFINITIONS = (
    (
        "WER, CER",
        "Substitutions, deletions and insertions, of words or of characters, per reference length, after the "
        "normalizer named above. Corpus: summed errors by summed lengths. Macro: the mean of the pairs' own rates.",
    ),
    (
        "ΔWER, ΔCER",
        "The rate in the room minus the clean rate, over the same pairs, in percentage points. Relative: divided by "
        "the clean rate. A pair of which an arm could not be decoded is in no rate, and is counted.",
    ),
    (
        "95 % interval",
        "Bootstrap over utterances: all pairs of an utterance, in all its rooms, are drawn together. Rooms are taken "
        "as given. An interval of a difference that includes 0 does not show one.",
    ),
    ("p", "Two-sided sign-flip test: without an effect of the room, each utterance's arms could as well be exchanged."),
    ("p, corrected", "The same by bin, corrected after Holm over the bins of a recognizer."),
    (
        "RT60, DRR",
        "The time in which sound in the room falls by 60 dB (T30 or T20 of the impulse response, broadband), and the "
        "energy of the direct sound over that of all later sound. Measured on the response used, unless marked.",
    ),
    (
        "Change point",
        "The RT60 up to which nothing is lost and from which on the loss grows in a straight line: a hinge fitted by "
        "least squares, weighted by reference length, with its bootstrap interval. It is given where the largest fit "
        "statistic over all thresholds is significant by sign flips. 0: the loss grows from the driest room on.",
    ),
    (
        "Bins that lose",
        "Tested from the most reverberant bin down, each at 0.05, until one does not lose significantly.",
    ),
    (
        "Spread over rooms",
        "Standard deviations of the error rate: of one utterance over its rooms; of the rooms' own deltas; and the "
        "latter without the chance that few utterances per room bring (one-way random effects).",
    ),
    (
        "The map",
        "Orange is a loss, blue a gain, on one scale for all recognizers. Italics: fewer than ten pairs.",
    ),
    (
        "Energy decay",
        "The backward-integrated energy of the impulse response after the direct sound, cut where it sinks into noise. "
        "The dotted line has the slope of the RT60.",
    ),
    (
        "Marks in transcripts",
        "<del>said, not heard</del> and <ins>heard, not said</ins>; both together are a substitution. Case and "
        "punctuation do not count.",
    ),
)


def how_to_read() -> str:
    """The definitions."""
    items = "".join(f"<div><dt>{name}</dt><dd>{meaning}</dd></div>" for name, meaning in _DEFINITIONS)
    return f'<dl class="definitions">{items}</dl>'
