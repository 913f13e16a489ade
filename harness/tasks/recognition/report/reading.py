"""What the numbers of the recognition task mean."""

from __future__ import annotations

READING = (
    (
        "WER, CER",
        "Substitutions, deletions and insertions, of words or of characters, per reference length, after the "
        "normalizer named above. Corpus: summed errors by summed lengths. Macro: the mean of the items' own rates. "
        "Languages written without spaces are counted by character.",
    ),
    (
        "ΔWER, ΔCER",
        "The rate under a condition minus the clean rate, over the same items, in percentage points. Relative: divided "
        "by the clean rate. An item that could not be decoded is in no rate, and is counted.",
    ),
    (
        "95 % interval",
        "Bootstrap over utterances: all items of an utterance, with all its RIRs, are drawn together. RIRs are taken "
        "as given. An interval of a difference that includes 0 does not show one.",
    ),
    (
        "p",
        "Two-sided sign-flip test: without an effect of the condition, an utterance's two sides could as well be "
        "exchanged. By group, corrected after Holm over the groups of a system and condition.",
    ),
    (
        "Robustness",
        "σ is the sample standard deviation of a system's error rates over its conditions, in one language, and pooled "
        "over all languages and conditions (which mixes in the difference between languages).",
    ),
    (
        "RT60, DRR",
        "The time in which the level in a room falls by 60 dB (T30 or T20 of the impulse response, broadband), and the "
        "energy of the direct path over that of everything later. Measured on the response used, unless marked.",
    ),
    (
        "Change point",
        "The RT60 up to which nothing is lost and from which on the loss grows in a straight line: a hinge fitted by "
        "least squares, weighted by reference length, with its bootstrap interval. It is given where the largest fit "
        "statistic over all thresholds is significant by sign flips. 0: the loss grows from the shortest RT60 on.",
    ),
    (
        "Bins that lose",
        "Tested from the most reverberant bin down, each at 0.05, until one does not lose significantly.",
    ),
    (
        "Spread over RIRs",
        "Standard deviations of the error rate: of one utterance over its RIRs; of the RIRs' own losses; and the "
        "latter without the chance that few utterances per RIR bring (one-way random effects).",
    ),
    ("The map", "Orange is a loss, blue a gain, on one scale for all systems. Italics: fewer than ten items."),
    (
        "Energy decay",
        "The backward-integrated energy of the impulse response after the direct path, cut where it sinks into noise. "
        "The dotted line has the slope of the RT60.",
    ),
    (
        "Failures",
        "Counted, never turned into text: not decoded, a transcript that loops, cut at the length cap, empty, text on "
        "silence.",
    ),
)
