"""The table of verifiers: id → function and arguments, with the names that IFEval gives to the same instructions.

IFEval: Zhou et al., Instruction-Following Evaluation for Large Language Models, arXiv 2311.07911. Its ids and argument
names are understood too. Its code counts some things otherwise; `note` says where ours is stricter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ......errors import DataError, unknown_name
from . import arguments as take
from . import content, form
from .text import says_something

VERIFIERS_VERSION = "1"
"""Changes whenever a verifier may judge a reply in another way; stored beside the scores."""


@dataclass(frozen=True, slots=True)
class VerifierSpec:
    """A row of the table. `check(reply, arguments)`: does the reply follow the instruction?"""

    id: str
    check: Callable[[str, Any], bool]
    arguments: type[take.Nothing]

    @property
    def summary(self) -> str:
        """What the verifier asks for, in one sentence."""
        return (self.check.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True, slots=True)
class IfevalName:
    """IFEval's name of a verifier: its arguments by ours, arguments that it fixes, and how ours differs."""

    ifeval: str
    id: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


VERIFIERS: Mapping[str, VerifierSpec] = {
    spec.id: spec
    for spec in (
        VerifierSpec("keywords", content.keywords, take.Keywords),
        VerifierSpec("keyword_frequency", content.keyword_frequency, take.KeywordCount),
        VerifierSpec("forbidden_words", content.forbidden_words, take.Keywords),
        VerifierSpec("letter_frequency", content.letter_frequency, take.Letter),
        VerifierSpec("words", content.words, take.Count),
        VerifierSpec("sentences", content.sentences, take.Count),
        VerifierSpec("lines", content.lines, take.Count),
        VerifierSpec("paragraphs", content.paragraphs, take.Paragraphs),
        VerifierSpec("paragraph_first_word", content.paragraph_first_word, take.FirstWord),
        VerifierSpec("one_of", content.one_of, take.OneOf),
        VerifierSpec("language", content.language, take.Language),
        VerifierSpec("bullets", form.bullets, take.Exactly),
        VerifierSpec("numbered_list", form.numbered_list, take.Exactly),
        VerifierSpec("highlights", form.highlights, take.AtLeastOne),
        VerifierSpec("title", form.title, take.Nothing),
        VerifierSpec("sections", form.sections, take.Sections),
        VerifierSpec("json", form.json, take.Json),
        VerifierSpec("placeholders", form.placeholders, take.AtLeastOne),
        VerifierSpec("postscript", form.postscript, take.Postscript),
        VerifierSpec("uppercase", form.uppercase, take.Nothing),
        VerifierSpec("lowercase", form.lowercase, take.Nothing),
        VerifierSpec("title_case", form.title_case, take.TitleCase),
        VerifierSpec("capital_words", form.capital_words, take.AtLeastOne),
        VerifierSpec("quotation", form.quotation, take.Nothing),
        VerifierSpec("start_phrase", form.start_phrase, take.Phrase),
        VerifierSpec("end_phrase", form.end_phrase, take.Phrase),
        VerifierSpec("repeat_prompt", form.repeat_prompt, take.Prompt),
        VerifierSpec("two_answers", form.two_answers, take.Nothing),
        VerifierSpec("no_commas", form.no_commas, take.Nothing),
        VerifierSpec("question_marks", form.question_marks, take.AtLeastOne),
        VerifierSpec("exclamation_marks", form.exclamation_marks, take.AtLeastOne),
        VerifierSpec("accented_words", form.accented_words, take.AtLeastOne),
    )
}

_CONSTRAINED = {"options": ["My answer is yes.", "My answer is no.", "My answer is maybe."], "contained": True}
IFEVAL_NAMES: Mapping[str, IfevalName] = {
    row.ifeval: row
    for row in (
        IfevalName("keywords:existence", "keywords", note="whole words"),
        IfevalName("keywords:frequency", "keyword_frequency", {"frequency": "count"}, note="whole words"),
        IfevalName("keywords:forbidden_words", "forbidden_words", {"forbidden_words": "keywords"}),
        IfevalName(
            "keywords:letter_frequency",
            "letter_frequency",
            {"let_frequency": "count", "let_relation": "relation"},
            note="a counts á",
        ),
        IfevalName("language:response_language", "language", note="long sentences too; py3langid"),
        IfevalName("length_constraints:number_words", "words", {"num_words": "count"}),
        IfevalName("length_constraints:number_sentences", "sentences", {"num_sentences": "count"}),
        IfevalName(
            "length_constraints:number_paragraphs", "paragraphs", {"num_paragraphs": "count"}, {"separator": "***"}
        ),
        IfevalName(
            "length_constraints:nth_paragraph_first_word",
            "paragraph_first_word",
            {"num_paragraphs": "count", "nth_paragraph": "paragraph"},
        ),
        IfevalName(
            "detectable_content:number_placeholders", "placeholders", {"num_placeholders": "count"}, note="no links"
        ),
        IfevalName(
            "detectable_content:postscript", "postscript", {"postscript_marker": "marker"}, note="at the end, with text"
        ),
        IfevalName("detectable_format:number_bullet_lists", "bullets", {"num_bullets": "count"}, note="• and – too"),
        IfevalName("detectable_format:constrained_response", "one_of", fixed=_CONSTRAINED),
        IfevalName(
            "detectable_format:number_highlighted_sections", "highlights", {"num_highlights": "count"}, note="each once"
        ),
        IfevalName(
            "detectable_format:multiple_sections",
            "sections",
            {"section_spliter": "marker", "num_sections": "count"},
            note="at the beginning of lines, each number once, with text",
        ),
        IfevalName("detectable_format:json_format", "json", note="an object or a list"),
        IfevalName("detectable_format:title", "title"),
        IfevalName("combination:two_responses", "two_answers", note="differ in words"),
        IfevalName("combination:repeat_prompt", "repeat_prompt", {"prompt_to_repeat": "prompt"}, note="and goes on"),
        IfevalName("startend:end_checker", "end_phrase", {"end_phrase": "phrase"}),
        IfevalName("startend:quotation", "quotation", note="one pair, «» and “” too"),
        IfevalName(
            "change_case:capital_word_frequency",
            "capital_words",
            {"capital_frequency": "count", "capital_relation": "relation"},
            note="two letters or more",
        ),
        IfevalName("change_case:english_capital", "uppercase", note="of any language"),
        IfevalName("change_case:english_lowercase", "lowercase", note="of any language"),
        IfevalName("punctuation:no_comma", "no_commas"),
    )
}
"""IFEval's names of instructions, and ours."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """An instruction of an item, ready to be checked."""

    spec: VerifierSpec
    arguments: take.Nothing

    @property
    def id(self) -> str:
        return self.spec.id

    def follows(self, reply: str) -> bool:
        """Whether `reply` follows the instruction; one without a letter or digit follows none."""
        return says_something(reply) and self.spec.check(reply, self.arguments)


def load_verifier(id_: str, arguments: Mapping[str, Any] | None = None) -> Verifier:
    """The verifier with this id (ours or IFEval's) and these arguments; arguments that are None are left out.

    Raises `UnknownNameError` for an id, `DataError` for arguments that are missing, unknown or out of range.

    >>> load_verifier("words", {"count": 3, "relation": "at most"}).follows("Sí, señor Núñez")
    True
    >>> load_verifier("length_constraints:number_words", {"num_words": 3, "relation": "less than"}).follows("Uno y dos")
    False
    >>> load_verifier("word", {})
    Traceback (most recent call last):
    ...
    squtr.errors.UnknownNameError: unknown verifier 'word'. Did you mean 'words'? Known: ...
    >>> load_verifier("words", {"cuont": 3, "relation": "at most"})
    Traceback (most recent call last):
    ...
    squtr.errors.DataError: verifier 'words': count: Field required; cuont: Extra inputs are not permitted. It takes ...
    """
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    named = IFEVAL_NAMES.get(id_)
    spec = VERIFIERS.get(id_ if named is None else named.id)
    if spec is None:
        raise unknown_name("verifier", id_, [*VERIFIERS, *IFEVAL_NAMES])
    if named is not None:
        clash = next((ours for theirs, ours in named.renamed.items() if theirs in given and ours in given), None)
        if clash is not None and clash not in named.renamed:
            raise DataError(f"verifier {id_!r}: the argument {clash!r} is given twice.", hint="Give it once.")
        given = {**named.fixed, **{named.renamed.get(name, name): value for name, value in given.items()}}
    try:
        taken = spec.arguments.model_validate(given)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors())
        raise DataError(f"verifier {id_!r}: {wrong}.", hint=f"It takes {_signature(spec)}.") from error
    return Verifier(spec, taken)


def _signature(spec: VerifierSpec) -> str:
    fields = spec.arguments.model_fields
    if not fields:
        return "no arguments"
    return ", ".join(name if each.is_required() else f"{name} (optional)" for name, each in fields.items())
