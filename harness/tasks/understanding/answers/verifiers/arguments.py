"""What verifiers take: small models that refuse unknown names, wrong types and values out of range."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Relation = Literal["at least", "at most", "less than", "more than", "exactly", "around", "between"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]


class Nothing(BaseModel):
    """No arguments."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Count(Nothing):
    """`relation` to `count`; "between" takes `upper`, "around" allows ±`tolerance`·count, and ±1 at least."""

    count: int = Field(ge=0)
    relation: Relation
    upper: int | None = None
    tolerance: float = Field(default=0.1, gt=0, lt=1)

    @model_validator(mode="after")
    def _check(self) -> Count:
        if (self.relation == "between") != (self.upper is not None):
            raise ValueError('`upper` goes with the relation "between", and with no other')
        if self.upper is not None and self.upper < self.count:
            raise ValueError(f"`upper` is {self.upper}, below `count`")
        return self

    def holds(self, found: int) -> bool:
        """Whether `found` is as many as asked for."""
        match self.relation:
            case "at least":
                return found >= self.count
            case "at most":
                return found <= self.count
            case "less than":
                return found < self.count
            case "more than":
                return found > self.count
            case "exactly":
                return found == self.count
            case "around":
                return abs(found - self.count) <= max(1, int(self.tolerance * self.count))
            case "between":
                return self.count <= found <= (self.upper if self.upper is not None else self.count)


class Exactly(Count):
    """A count that is exact unless `relation` says otherwise."""

    relation: Relation = "exactly"


class AtLeast(Count):
    """A count that is the least unless `relation` says otherwise."""

    relation: Relation = "at least"


class AtLeastOne(AtLeast):
    """At least one unless stated otherwise."""

    count: int = Field(default=1, ge=0)


class Keywords(Nothing):
    keywords: Texts
    fold_accents: bool = False


class KeywordCount(AtLeast):
    keyword: Text
    fold_accents: bool = False


class Letter(Count):
    """A letter, and how often. A plain vowel counts its accented forms too, an accented one itself only."""

    letter: Annotated[str, StringConstraints(min_length=1, max_length=2)]

    @model_validator(mode="after")
    def _check_letter(self) -> Letter:
        from .text import letters

        if len(letters(self.letter)) != 1:
            raise ValueError(f"`letter` is {self.letter!r}, not one letter")
        return self


class Paragraphs(Exactly):
    """How many paragraphs, and what is between them ("": blank lines)."""

    separator: str = ""


class FirstWord(Nothing):
    """The `first_word` of paragraph number `paragraph` (from 1), and how many paragraphs there are, if asked for."""

    paragraph: int = Field(ge=1)
    first_word: Text
    count: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _check(self) -> FirstWord:
        if self.count is not None and self.paragraph > self.count:
            raise ValueError(f"`paragraph` is {self.paragraph}, but `count` {self.count}")
        return self


class Sections(AtLeast):
    """How many sections, and the word that begins each, before its number."""

    marker: Text = "Sección"


class Json(Nothing):
    """Fields that a JSON object must have."""

    keys: list[Text] = []


class Postscript(Nothing):
    """How the postscript begins; None: P. D., P. S. or the like."""

    marker: Text | None = None


class Phrase(Nothing):
    phrase: Text


class Prompt(Nothing):
    prompt: Text


class OneOf(Nothing):
    """Texts, one of which is the reply; `contained`: or is in it."""

    options: Texts
    contained: bool = False


class TitleCase(Nothing):
    """`small_words`: articles, prepositions and conjunctions may begin with a small letter, but for the first word."""

    small_words: bool = True


class Language(Nothing):
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")]
