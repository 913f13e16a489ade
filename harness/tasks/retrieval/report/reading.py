"""What the numbers of the retrieval task mean."""

from __future__ import annotations

READING = (
    (
        "nDCG@10",
        "Discounted cumulative gain of the first ten documents with linear gain, divided by that of the ideal "
        "ranking of all judged documents, as trec_eval computes it. 1 is perfect. A query that finds nothing scores 0; "
        "a document without judgment counts as not relevant (their number is in the result files).",
    ),
    ("MRR@10", "The mean of 1 / rank of the first relevant document, 0 where none is among the first ten."),
    ("Recall@10", "The share of a query's relevant documents that are among the first ten, averaged over queries."),
    (
        "WER, CER",
        "Substitutions, deletions and insertions, of words or of characters, per reference length, after the "
        "normalizer named above. Corpus: summed errors by summed lengths. Macro: the mean of the queries' own rates. "
        "Languages written without spaces are counted by character. Either may pass 100 %.",
    ),
    (
        "Loss",
        "The baseline's score minus the condition's, over the same queries; relative: divided by the baseline's. "
        "Positive is worse, negative a gain.",
    ),
    (
        "Robustness",
        "σ is the sample standard deviation of a system's mean scores over its conditions of audio, in one language, "
        "and pooled over all languages and conditions as SQuTR publishes it (which mixes in the difference between "
        "languages). SNR at 10 % loss: where, as the noise grows, the mean score first falls to 90 % of the clean one, "
        "interpolated between the levels that were measured.",
    ),
    (
        "Loss attribution",
        "The shortfall of a run from a score of 1 splits in two. The retriever's part is what the typed query falls "
        "short of as well; the ASR's part is the loss against text. The slope is the loss per unit of a query's own "
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
        "The typed query: no audio, no transcriber. It is the upper bound of what a cascade with the same retriever can "
        "be expected to reach.",
    ),
    (
        "SNR",
        "Level of speech over level of noise in dB, over the whole clip. The same query has the same noise at every "
        "level. With reverberation, speech is reverberated first, then noise is added.",
    ),
    ("RT60", "The time in which the level in a room falls by 60 dB, measured on the room impulse response used."),
    (
        "Does a part help?",
        "Two systems that differ in exactly that part, compared query by query (paired bootstrap, sign-flip test, "
        "Holm's correction). What both have in common cancels.",
    ),
    (
        "Failures",
        "Counted, never turned into text: not decoded, a transcript that loops, cut at the length cap, empty, text on "
        "silence, a query that found nothing (it scores 0), and one without a relevant document (it is left out).",
    ),
    (
        "Cascade and end-to-end",
        "A cascade is a transcriber followed by a retriever, perhaps behind a front end that enhances the audio; an "
        "end-to-end system searches with the audio itself and has no transcript, so no error rate (–).",
    ),
)
