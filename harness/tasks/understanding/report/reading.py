"""What the numbers of the understanding task mean."""

from __future__ import annotations

READING = (
    (
        "Accuracy",
        "The share of right choices. A reply that names no option, or several, is unparsed: it scores 0 and is never "
        "guessed. Intervals at 95 %: Wilson's for shares, bootstrap over items elsewhere.",
    ),
    (
        "Chance",
        "The mean of 1 / number of options of the items concerned. Above chance is 0 for random choices, 100 % for all "
        "right, and negative for less than random choices would get.",
    ),
    ("Labels", "An item counts in each of its labels, and in each pair of them; nothing is weighted."),
    (
        "Text-only baseline",
        "The same model gets the same question without the audio. What it gets right, the text gives away.",
    ),
    (
        "Instructions",
        "Programs check the reply. Strict: as it is; loose: also without its first or last line, or asterisks. An "
        "empty reply follows nothing.",
    ),
    ("Missing audio", "Items whose audio is not there lower the coverage: they are in no score."),
    (
        "Map",
        "Accuracy of items with a label of perception (rows) and one of reasoning (columns); the color says how far "
        "it is above or below chance. Cells of fewer than 10 items are in italics: point at one to see its interval.",
    ),
)
