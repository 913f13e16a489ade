"""Where a reply names options: by letter, by ordinal word, by text; and which of these it denies or only asks.

Rules work on the `skeleton` of a text (no case, no accents, the same positions); the text itself says what is upper
case. "A", "E", "O", "U" and "Y" are Spanish words too (and "a" an English one), so as letters they need more around
them than others.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from .option_text import Options
from .reply_text import skeleton

Kind = Literal["letter", "ordinal", "text"]

_WORD_LETTERS = frozenset("aeouy")
_NOUN = r"(?:opcion|alternativa|respuesta|letra|inciso|literal|apartado|option|choice|answer|letter)"
_ARTICLES = (
    r"(?:la|las|el|lo|los|un|una|unos|unas|esta|este|esto|esa|ese|eso|estas|estos|su|sus|tu|tus|mi|mis|cada|dicha|"
    r"dicho|todas|todos|que|nuestra|nuestro|the|this|that|your)"
)
_BECAUSE = r"(?:porque|ya que|pues|puesto que|es|seria|segun|because|since|is|era|dice|describe|refleja)"
_OPENING = r"[(\[{\"'“‘«⟦*_\s]*"
_QUOTES = "\"'“”‘’«»()[]{}⟦⟧*_`"
LIST_GAP = re.compile(
    r"(?:[\s,;:/&+|().\-–—•·⟦⟧*_\"'«»“”‘’¿?]|\b(?:[a-z]|ni|bien|and|or|nor|la|el|las|los|the|opcion|option|"
    r"tal vez|quizas?|incluso|tambien|maybe|perhaps)\b)*"
)
"""What stands between the members of a list, and nothing else."""
_GLUE = re.compile(r"[\s,:;.)\]}\-–—=⟦⟧(\[{\"'“”‘’«»*_→>]*(?:\b(?:es decir|o sea|es|is|i e|that is)\b[\s,:;\"'“«(]*)?")
_CHAINED = re.compile(
    r"(?:\s*[,/&+;]\s*(?:(?:y/o|y|o|u|e|and|or)\b)?|\s+(?:y/o|y|o|u|e|ni|and|or|nor)\b)\s*"
    r"(?:(?:bien|tal vez|quizas?|incluso|tambien|maybe|perhaps)\s+)?"
    rf"(?:(?:la|el|the|{_NOUN})\s+){{0,2}}{_OPENING}([a-z])(?!\w)"
)
_BY_NOUN = re.compile(
    rf"\b(?P<noun>{_NOUN}|opciones|alternativas|respuestas|letras|options|choices|answers)\s*"
    rf"(?:(?:correcta|elegida|final|es|is|seria|letra|[:=])\s*)*{_OPENING}(?P<letter>[a-z])(?!\w)"
)
_BY_ARTICLE = re.compile(rf"\b(?:la|the){_OPENING}\s{_OPENING}(?P<letter>[a-z])(?!\w)")
_BY_VERB = re.compile(rf"\b(?:es|seria|sea|is|be|it['’]s){_OPENING}\s{_OPENING}(?P<letter>[a-z])(?!\w)")
_MARKED = re.compile(r"⟦\s*(?P<letter>[a-z])\s*⟧")
_IN_BRACKETS = re.compile(r"(?<![\w)\]])[(\[](?P<letter>[a-z])[)\]](?!\w)")
_HALF_BRACKET = re.compile(r"(?<![\w(\[])(?P<letter>[a-z])\)(?!\w)")
_LABEL = re.compile(r"(?:^|[.;!?\n])[\s\-•*>]*(?P<letter>[a-z])(?:\s*:|\s+(?:es|is|seria)\b)")
_AT_END = re.compile(
    r"(?::|=>|→|\b(?:diria|creo|pienso|probablemente|quizas?|tal vez|seguramente|probably|maybe|definitely)"
    r"(?: que)?\s)\s*(?P<letter>[a-z])[\s.)]*(?:$|\n)"
)
_AFTER_LABEL = re.compile(r"(?:^|[\W_])[a-z]\s*[).:⟧\]–—-][\W_]*$|⟦[a-z]⟧[\W_]*$")
_FIRST = re.compile(r"[\W_]*(?P<letter>[a-z])(?![\w'’])")

_ORDINAL_STEMS = (
    ("primer", "first", "1st"), ("segund", "second", "2nd"), ("tercer", "third", "3rd"), ("cuart", "fourth", "4th"),
    ("quint", "fifth", "5th"), ("sext", "sixth", "6th"), ("septim", "seventh", "7th"), ("octav", "eighth", "8th"),
    ("noven", "ninth", "9th"), ("decim", "tenth", "10th"),
)  # fmt: skip
_ORDINALS: dict[str, int] = {}
for _index, (_stem, *_english) in enumerate(_ORDINAL_STEMS):
    _ORDINALS |= dict.fromkeys((f"{_stem}a", f"{_stem}o", *_english), _index)
_ORDINALS |= {"primer": 0, "tercer": 2, "ultima": -1, "ultimo": -1, "last": -1, "penultima": -2, "penultimo": -2}
_NUMBERS = {
    "uno": 0, "one": 0, "dos": 1, "two": 1, "tres": 2, "three": 2, "cuatro": 3, "four": 3, "cinco": 4, "five": 4,
}  # fmt: skip
_ORDINAL = rf"(?P<ordinal>{'|'.join(sorted(_ORDINALS, key=len, reverse=True))}|\d{{1,2}}\.?\s?[ªº]|\d{{1,2}}\.a)"
_ORDINAL_NOUN = re.compile(
    rf"(?<!\bmi )(?<!\bsu )(?<!\bmy )\b{_ORDINAL}(?:\s+de las)?\s+"
    r"(?:opcion|alternativa|respuesta|opciones|option|choice|answer|one)\b(?!\s+(?:del?|of|que|that)\b)"
)
_NOUN_ORDINAL = re.compile(
    rf"\b(?:opcion|alternativa|respuesta|option|choice|answer)\s+(?:correcta\s+)?(?:es\s+)?(?:la\s+)?"
    rf"(?:{_ORDINAL}|(?:numero\s+|n\.?\s?[ºo]\.?\s*|#\s*)?(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)}))(?![\w%]|[.,:]\d)(?!\s+(?:vez|veces|times?|personas?)\b)"
)
_FIRST_ORDINAL = re.compile(
    rf"[\W_]*(?P<article>(?:la|el|the)\s+)?{_ORDINAL}(?=\s*(?:$|[^\w\s]|\n)|\s+{_BECAUSE}\b|\s+(?:o|y|or|and)\s+(?:la|el|the)\b)"
)
_ANY_ORDINAL = re.compile(rf"\b{_ORDINAL}(?!\w)")
_NEXT_ORDINAL = re.compile(rf"\s*(?:,|o|y|or|and)\s*(?:la|el|the)\s+{_ORDINAL}\b")

_LEAD = re.compile(
    r"[\W_]*(?:(?:es|seria|son|la|el|las|los|the|opcion|opciones|alternativa|respuesta|letra|literal|inciso|apartado|"
    r"option|choice|answer|letter|correcta|correcto|is|it s|its|that|que|claramente|probablemente|definitivamente|"
    r"sin duda|creo|diria|pienso|considero|parece|seguramente|quiza|quizas|tal vez|yo|sea|numero|clearly|probably|"
    r"definitely|i think|i believe|it|would be|entonces|pues|bueno|vale|si|de acuerdo|claro|ok|sure|marcada|por|con|a|"
    r"corresponde|correct|asi|lo|tanto|debe|debe de|tiene|podria|puede|ser|solo|elijo|escojo|i|say|answers?)\b[\W_]*)*"
)
_NO_DOUBT = re.compile(
    r"\bno (?:me )?(?:hay|cabe|tengo)(?: la menor| ninguna| lugar a)? dudas?"
    r"|\bsin(?: ninguna| la menor| lugar a)? dudas?\b"
    r"|\bno (?:solo|obstante)\b|\bsin embargo\b|\bnot only\b|\bno doubt\b|\bwithout a? ?doubt\b"
)
_CLAUSE = re.compile(r"[.;:!?¡¿\n,(]|\b(?:pero|sino|porque|aunque|but|because|although|mientras)\b")
_DENIED_BEFORE = re.compile(
    r"\b(?:no|ni|tampoco|nunca|jamas|nadie|ningun\w*|not|never|nobody|none|neither|nor|without|sin|cannot|\w+n['’]t|descart\w*|elimin\w*|"
    r"exclu(?:y\w+|ir|imos|id[oa]s?|ded?|ding)|"
    r"rechaz\w*|salvo|excepto|except|(?:tod[ao]s|cualquiera)(?: las (?:opciones|demas))? menos|"
    r"incorrect\w*|erron\w*|(?:en lugar|en vez) de|instead of|rather than|"
    r"a diferencia de|unlike|contrario a|ruled? out|wrong)\b"
)
_LABELLED_WRONG = re.compile(
    r"(?:\b(?:incorrect\w*|descartad\w*|fals[oa]s?|erron\w*|eliminad\w*|wrong)\s*(?::|=|->|→)\s*|[❌✗✘✖🚫]\ufe0f?)[\W_]*$"
)
_SUPPOSED = re.compile(r"\b(?:si|if)\s")
_DENIED_AFTER = re.compile(
    r"[\s)\]}⟧\"'”’»*_]*(?:,[^,.;:\n]{1,80},)?[\s:=(–—-]*(?:(?:no|tampoco|nunca|jamas|not|never)\b"
    r"|(?:(?:es|seria|son|esta|estan|queda|quedan|se|parece|resulta|is|are|was|seems|can be|puede|debe|hay que)"
    r"\s+){0,2}(?:(?:la|una?|el|the|an?|ser|be|opcion|respuesta|completamente|claramente|clearly|tambien)\s+){0,3}"
    r"(?:no\b|not\b|isn['’]t\b|doesn['’]t\b|incorrect\w*|fals[oa]s?\b|erron\w*|equivocad\w*|descart\w*|elimin\w*|"
    r"exclu(?:y\w+|ir|imos|id[oa]s?|ded?|ding)|wrong\b|false\b|ruled out|invalid\w*)|[❌✗✘✖🚫])"
)
_NEAR = 400
"""How many characters to either side are looked at."""
_AGAINST = re.compile(r"\b(?:no puedo|no me es posible|lo siento|i'?m sorry|i can'?t|i cannot|as an ai)\b")


@dataclass(frozen=True, slots=True)
class Mention:
    """Characters [start, end) of a text name one of `indices` (several if accents that are missing tell them apart)."""

    start: int
    end: int
    indices: frozenset[int]
    kind: Kind


def marked_letters(text: str) -> str:
    """Letters in bold, quotes or brackets as ⟦B⟧, all other emphasis away; lower-case word letters lose it too.

    >>> marked_letters("Es **B**, _no_ (A) ni `c`"), marked_letters("**B)** Madrid"), marked_letters("un niño(a)")
    ('Es ⟦B⟧, no ⟦A⟧ ni ⟦c⟧', '⟦B⟧ Madrid', 'un niño(a)')
    """
    text = re.sub(r"~~[^~\n]*~~", " ", text)
    text = re.sub(
        r"(?<![\w\])])[*_`\"“‘«'\[({<]{1,8}\s?([A-Zb-df-np-tv-xz])\s?[).:]?\s?[*_`\"”’»'\])}>]{1,8}(?!\w)",
        r"⟦\1⟧",
        text,
    )
    text = re.sub(r"\*+|`+|(?<!\w)_+|_+(?!\w)", "", text)
    return re.sub(r"⟧\s*[).:](?=\s)", "⟧ ", text)


def is_shouted(text: str) -> bool:
    """Whether a text of eight letters or more is all upper case, so that case says nothing about its letters."""
    letters = [char for char in text if char.isalpha()]
    return len(letters) >= 8 and sum(map(str.isupper, letters)) >= 0.9 * len(letters)


class Reading:
    """A text with all mentions of options in it. `lone` texts stand where an answer is expected, not in prose."""

    def __init__(self, text: str, options: Options, *, lone: bool, shouted: bool) -> None:
        self.text = text
        self.bare = skeleton(text)
        self.options = options
        self._shouted = shouted
        self._occurrences = options.occurrences_in(text)
        self._occurrence_starts = [occurrence.start for occurrence in self._occurrences]
        self._text_at = {occurrence.start: occurrence for occurrence in self._occurrences}
        self._letters: dict[int, Mention] = {}
        self._find_letters(lone)
        mentions = [*self._letters.values(), *self._ordinals(lone), *self._texts(lone)]
        self.mentions = sorted(mentions, key=lambda mention: (mention.start, -mention.end))
        self.denied = False
        """Whether `standing` left out something that is denied, asked or supposed."""

    # Letters

    def _find_letters(self, lone: bool) -> None:
        for pattern in (*(_MARKED, _BY_NOUN, _BY_ARTICLE, _BY_VERB, _IN_BRACKETS, _HALF_BRACKET), *(_LABEL, _AT_END)):
            for match in pattern.finditer(self.bare):
                at = match.start("letter")
                if pattern in (_MARKED, _IN_BRACKETS):
                    accepted = pattern is _MARKED or self._is_upper(at) or (lone and match.start() == 0)
                elif pattern is _HALF_BRACKET:
                    accepted = self._is_upper(at) or self._begins_line(match.start())
                elif pattern in (_LABEL, _AT_END):
                    accepted = self._is_upper(at) or (match[0].endswith(":") and self.bare[at] not in _WORD_LETTERS)
                elif pattern is _BY_VERB:
                    accepted = (
                        self._is_upper(at) and self._leads(match.start()) and self._stands_apart(at, article=False)
                    )
                else:
                    noun = match.groupdict().get("noun") or ""
                    if noun in ("letra", "letras", "letter") and not (
                        self._leads(match.start()) and (lone or self._ends_word(at, strict=True))
                    ):
                        continue  # A letter that is talked about.
                    accepted = self._stands_apart(at, article=not noun.startswith(("respuesta", "answer")))
                if accepted:
                    self._add_letters(at, match.end())
        first = _FIRST.match(self.bare) if lone else None
        if first is not None and self._stands_apart(first.start("letter"), article=False):
            self._add_letters(first.start("letter"), first.end())

    def _is_upper(self, at: int) -> bool:
        return self.text[at].isupper() and not self._shouted

    def _leads(self, at: int) -> bool:
        """Whether only words that lead to an answer stand between the beginning of a clause and `at`."""
        start = max(0, at - _NEAR)
        for boundary in _CLAUSE.finditer(self.bare, start, at):
            start = boundary.end()
        return _LEAD.fullmatch(self.bare, start, at) is not None

    def _begins_line(self, at: int) -> bool:
        return not self.bare[self.bare.rfind("\n", 0, at) + 1 : at].strip(" \t-•>#")

    def _stands_apart(self, at: int, *, article: bool) -> bool:
        """Whether the letter at `at` is a letter, not a word: "A veces", "o quizá", "la opción a elegir"."""
        rest = self.bare[at + 1 : at + _NEAR]
        if re.match(r"['’.-]\w", rest):
            return False
        if self.bare[at] not in _WORD_LETTERS or re.match(rf"\s*(?:$|[^\w\s])|\s+{_BECAUSE}\b", rest):
            return True
        skipped = re.match(r"\s*", rest)
        own = self._text_at.get(at + 1 + (skipped.end() if skipped else 0))
        index = ord(self.bare[at]) - ord("a")
        if (own is not None and index in own.indices) or _CHAINED.match(self.bare, at + 1):
            return True
        upper = article and self._is_upper(at) and not re.match(rf"\s+{_ARTICLES}\b", rest)
        following = re.match(r"\s+(\w+)", self.text[at + 1 : at + _NEAR])
        return upper and not (following and len(following[1]) > 1 and following[1].isupper())

    def _add_letters(self, at: int, end: int) -> None:
        """The letter at `at`, and those that a list joins to it ("A, B y C")."""
        index = ord(self.bare[at]) - ord("a")
        if index < len(self.options):
            self._letters[at] = Mention(at, max(end, at + 1), frozenset((index,)), "letter")
        while (match := _CHAINED.match(self.bare, end)) and self._ends_word(match.start(1)):
            at, end = match.start(1), match.end()
            if (index := ord(self.bare[at]) - ord("a")) < len(self.options):
                self._letters.setdefault(at, Mention(at, at + 1, frozenset((index,)), "letter"))

    def _ends_word(self, at: int, *, strict: bool = False) -> bool:
        return (not strict and self.bare[at] not in _WORD_LETTERS) or bool(
            re.match(r"\s*(?:$|[^\w\s])", self.bare[at + 1 : at + _NEAR])
        )

    # Ordinals and texts

    def _ordinals(self, lone: bool) -> Iterable[Mention]:
        found = [*_ORDINAL_NOUN.finditer(self.bare), *_NOUN_ORDINAL.finditer(self.bare)]
        # Where options are "El primer audio", "El segundo audio", "el segundo" may be either.
        bare_ordinals = lone and not any(_ANY_ORDINAL.search(skeleton(option)) for option in self.options.texts)
        first = _FIRST_ORDINAL.match(self.bare) if bare_ordinals else None
        # "Segundo, el hablante…" counts points, not options.
        if first is not None and (
            first["article"] or first["ordinal"].endswith("a") or not self.bare.startswith(",", first.end())
        ):
            found.append(first)
            while following := _NEXT_ORDINAL.match(self.bare, found[-1].end()):
                found.append(following)
        for match in found:
            index = self._index_of_ordinal(match["ordinal"] or match["number"])
            if 0 <= index < len(self.options):
                yield Mention(match.start(), match.end(), frozenset((index,)), "ordinal")

    def _index_of_ordinal(self, word: str) -> int:
        if word in _NUMBERS:
            return _NUMBERS[word]
        if word not in _ORDINALS:
            return int(re.sub(r"\D", "", word)) - 1
        index = _ORDINALS[word]
        return index if index >= 0 else len(self.options) + index

    def _texts(self, lone: bool) -> Iterable[Mention]:
        for occurrence in self._occurrences:
            if not (occurrence.indices & self.options.function_words):
                yield Mention(occurrence.start, occurrence.end, occurrence.indices, "text")
                continue
            before = self.bare[max(0, occurrence.start - _NEAR) : occurrence.start].rstrip()
            after = self.bare[occurrence.end : occurrence.end + _NEAR]
            ends = re.match(r"\s*(?:$|[.,;:!)\n⟧]|porque\b|because\b)", after)
            labelled = ends and _AFTER_LABEL.search(before)
            quoted = bool(re.search(r"[\"'“‘«(\[⟦]$", before)) and bool(re.match(r"[.,!]?[\"'”’»)\]⟧]", after))
            leads = lone and ends and not re.sub(r"[\W_]+", "", before)
            if (
                quoted
                or labelled
                or (leads and not _AGAINST.search(self.bare[: _sentence_end(self.bare, occurrence.end)]))
            ):
                yield Mention(occurrence.start, occurrence.end, occurrence.indices, "text")

    # What is meant

    def standing(self) -> list[Mention]:
        """The mentions that are neither denied, nor asked, nor supposed, nor in a list of all options."""
        kept: list[Mention] = []
        denied: list[Mention] = []
        denied_until = -1
        for place, mention in enumerate(self.mentions):
            joined = 0 <= denied_until <= mention.start and LIST_GAP.fullmatch(self.bare, denied_until, mention.start)
            inside = mention.start < denied_until
            if joined or inside or self._is_denied(place):
                denied_until = max(denied_until, mention.end)
                denied.append(mention)
            elif self._is_asked(mention):
                self.denied = True  # Not an answer either, but nothing speaks against it.
            else:
                kept.append(mention)
        self.denied |= bool(denied)
        # "La A, que habla de Madrid, es incorrecta" is against A by both its names.
        against: dict[frozenset[int], list[Mention]] = {}
        for mention in denied:
            against.setdefault(mention.indices, []).append(mention)
        kept = [each for each in kept if not self._is_against(each, against.get(each.indices, []))]
        return self._without_lists(kept)

    def _is_against(self, mention: Mention, denied: list[Mention]) -> bool:
        """Whether the same sentence denies the option (`denied` in order)."""
        place = bisect.bisect_left(denied, mention.start, key=lambda other: other.start)
        for other in denied[max(0, place - 1) : place + 1]:
            first, second = sorted((mention, other), key=lambda each: each.start)
            if re.compile(r"[.!?;\n]").search(self.bare, first.end, second.start) is None:
                return True
        return False

    def _is_denied(self, place: int) -> bool:
        mention = self.mentions[place]
        start = max(0, mention.start - _NEAR)
        for boundary in _CLAUSE.finditer(self.bare, start, mention.start):
            start = boundary.end()
        clause = _NO_DOUBT.sub(" ", self.bare[start : mention.start])
        supposed = _SUPPOSED.search(f"{clause} ") and not re.search(r"\bsí\s", self.text[start : mention.start].lower())
        if (
            _DENIED_BEFORE.search(clause)
            or supposed
            or _LABELLED_WRONG.search(self.bare[max(0, mention.start - 60) : mention.start])
        ):
            return True
        match = _DENIED_AFTER.match(self.bare, mention.end)
        # "B: falso" says option B where that is "Falso".
        if match is None:
            return False
        near = self._occurrences[bisect.bisect_left(self._occurrence_starts, mention.end) :][:16]
        return not any(occurrence.start < match.end() <= occurrence.end for occurrence in near)

    def _is_asked(self, mention: Mention) -> bool:
        near = max(0, mention.start - _NEAR)
        if self.bare.rfind("¿", near, mention.start) > self.bare.rfind("?", near, mention.start):
            return self.bare.find("?", mention.end, mention.end + _NEAR) >= 0
        ending = re.compile(r"[.!?\n]").search(self.bare, mention.end, mention.end + _NEAR)
        alone = not self.bare[near : mention.start].strip(" \t\n" + _QUOTES)
        return ending is not None and ending[0] == "?" and not alone

    def _without_lists(self, mentions: list[Mention]) -> list[Mention]:
        """Without runs that name every option once, with nothing but separators between."""
        merged: list[list[Mention]] = []
        for mention in mentions:
            last = merged[-1] if merged else None
            if last and self._says_the_same(last[-1], mention):
                last.append(mention)
            else:
                merged.append([mention])
        kept: list[Mention] = []
        at = 0
        size = len(self.options)
        while at < len(merged):
            run = merged[at : at + size]
            named = [indices for group in run for indices in {mention.indices for mention in group}]
            if len(run) == size and len(frozenset().union(*named)) == size == len(named) and self._is_list(run):
                at += size
            else:
                kept.extend(merged[at])
                at += 1
        return kept

    def _says_the_same(self, one: Mention, other: Mention) -> bool:
        if one.indices != other.indices:
            return False
        return other.start < one.end or bool(_GLUE.fullmatch(self.bare, one.end, other.start))

    def _is_list(self, run: list[list[Mention]]) -> bool:
        return all(LIST_GAP.fullmatch(self.bare, one[-1].end, other[0].start) for one, other in pairwise(run))

    def leading(self, standing: list[Mention]) -> tuple[list[Mention], int]:
        """The mentions that the text begins with, joined by separators, and where they end; none if it begins else."""
        if not standing or not _LEAD.fullmatch(self.bare, 0, standing[0].start):
            return [], 0
        group = [standing[0]]
        end = standing[0].end
        for mention in standing[1:]:
            if mention.start >= end and not LIST_GAP.fullmatch(self.bare, end, mention.start):
                break
            group.append(mention)
            end = max(end, mention.end)
        return group, end


def _sentence_end(bare: str, start: int) -> int:
    """Where the sentence that holds position `start` ends; "B. Madrid" is one, as "B." is a label."""
    for match in re.compile(r"[.!?…](?=\s|$)|\n").finditer(bare, start):
        before = bare[: match.start()]
        if match[0] == "." and re.search(r"(?:^|[\W_])[a-z]$", before):
            continue
        return match.end()
    return len(bare)


def first_sentence(bare: str) -> int:
    begin = re.match(r"[\W_]*", bare)
    return _sentence_end(bare, begin.end() if begin else 0)
