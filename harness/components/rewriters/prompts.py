"""What an LLM is told to do with transcripts: named prompts, whose text changes only with the number in their name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ....errors import UsageError, unknown_name
from ...text.language_names import language_name
from ..batches import require_positive

_PLACEHOLDER = re.compile(r"\{(text|texts|language)\}")
OWN = "own"


@dataclass(frozen=True, slots=True)
class RewritePrompt:
    """A prompt; `{text}` in it is a query's transcript, `{texts}` the numbered list of its n best, `{language}` the
    English name of their language.
    """

    name: str
    template: str

    @property
    def takes_several(self) -> bool:
        return "{texts}" in self.template

    def filled(self, transcripts: Sequence[str], language: str) -> str:
        """The prompt for one query's transcripts, best first. Blanks and line ends in them are single blanks.

        >>> RewritePrompt("own", "{language}: {text}").filled(["a {language} \\n b"], "en")
        'English: a {language} b'
        """
        lines = [" ".join(text.split()) for text in transcripts]
        values = {
            "language": language_name(language),
            "text": lines[0],
            "texts": "\n".join(f"{place}. {line}" for place, line in enumerate(lines, start=1)),
        }
        # In one pass: a transcript may hold what looks like a placeholder.
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)


PROMPTS: Mapping[str, RewritePrompt] = MappingProxyType(
    {
        prompt.name: prompt
        for prompt in (
            RewritePrompt(
                "correct/1",
                "A person spoke a search query in {language}, and speech recognition wrote it down. The transcript may "
                "hold words that were misrecognized. Replace these by what was most likely spoken, and keep all other "
                "words. Do not answer the query, do not translate it, do not add anything to it. If nothing is wrong, "
                "repeat the transcript as it is.\n\n"
                "Transcript: {text}\n\n"
                "Write the corrected transcript on one line, and nothing else.",
            ),
            RewritePrompt(
                "correct-n-best/1",
                "A person spoke a search query in {language}, and speech recognition wrote down what it may have been, "
                "the most likely transcript first. Each may hold words that were misrecognized. Find out from all of "
                "them what was most likely spoken. Do not answer the query, do not translate it, do not add anything "
                "to it.\n\n"
                "Transcripts:\n{texts}\n\n"
                "Write the corrected transcript on one line, and nothing else.",
            ),
        )
    }
)


def rewrite_prompt(written: str, n_best: int) -> RewritePrompt:
    """The prompt of this name, or one of the user's own, which is a text with a placeholder; "" is the usual one.

    Raises `UnknownNameError` for a name that is not known, `UsageError` for a text that has not exactly one of `{text}`
    and `{texts}`, and for one transcript where several are given or the other way round.

    >>> rewrite_prompt("", 1).name, rewrite_prompt("", 5).name, rewrite_prompt("Mend: {text}", 1).name
    ('correct/1', 'correct-n-best/1', 'own')
    """
    require_positive(n_best=n_best)
    if not written:
        written = "correct/1" if n_best == 1 else "correct-n-best/1"
    if written in PROMPTS:
        prompt = PROMPTS[written]
    elif not any(sign in written for sign in "{} \n"):
        raise unknown_name("prompt for rewriting", written, PROMPTS)
    else:
        prompt = RewritePrompt(OWN, written)
    if ("{text}" in prompt.template) == prompt.takes_several:
        raise UsageError(
            f"the prompt {written[:80]!r} needs one of {{text}} and {{texts}}.",
            hint="Write {text} where the transcript belongs, or {texts} for the n best.",
        )
    if prompt.takes_several != (n_best > 1):
        given = f"the {n_best} best transcripts" if n_best > 1 else "one transcript"
        raise UsageError(
            f"the prompt {prompt.name} takes {'several transcripts' if prompt.takes_several else 'one'}, and is given "
            f"{given}.",
            hint="Set n_best of the system, or take another prompt.",
        )
    return prompt
