"""Verifiers of how a reply looks: lists, titles, sections, JSON, placeholders, case, quotation, beginnings, ends."""

from __future__ import annotations

import json as json_module
import re
import unicodedata
from typing import Any, NoReturn

from .....text.base import word_list
from . import text as of
from .arguments import AtLeast, Count, Exactly, Json, Nothing, Phrase, Postscript, Prompt, Sections, TitleCase

_BULLET = re.compile(r"^[ \t]*[-*•‣◦▪·–—+][ \t]+(?=[^\n]*[^\W_])", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]*(?:\d{1,3}|[a-zA-Z])[.)](?:[ \t]+|-[ \t]*)(?=[^\n]*[^\W_])", re.MULTILINE)
_HIGHLIGHT = re.compile(r"(?<![*\w])(\*{1,3})(?=[^\s*])([^*\n]*[^\s*])\1(?![*\w])")
_TITLE = re.compile(r"<<([^<>\n]+)>>")
_PLACEHOLDER = re.compile(r"\[([^\[\]\n]+)\](?!\()")
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_POSTSCRIPT = (
    r"(?:P\.\s?P\.\s?[DS]\.?|P\.\s?[DS]\.|[Pp]\.\s?[ds]\.|P[DS]\s?[.:]|Posdata\b|Post\s?scriptum\b|Postscript\b)"
)
_PAIRS = {"«": "»", "“": "”", "„": "“", '"': '"', "‹": "›"}
_COMMAS = ",，،、﹐"
_SMALL = frozenset(
    word_list(
        "a al ante bajo con contra de del desde e el en entre hacia hasta la las lo los mi ni o para pero por que "
        "se según si sin sobre su sus tras tu u un una unos unas y"
    )
)


def bullets(reply: str, arguments: Exactly) -> bool:
    """There are so many bullet points: lines that begin with -, *, • or the like, a blank, and say something."""
    return arguments.holds(len(_BULLET.findall(of.plain(reply))))


def numbered_list(reply: str, arguments: Exactly) -> bool:
    """There are so many numbered points: lines that begin with 1. or 1) or a)."""
    return arguments.holds(len(_NUMBERED.findall(of.plain(reply))))


def highlights(reply: str, arguments: AtLeast) -> bool:
    """So many parts are highlighted with asterisks, `*one*` or `**two**`."""
    found = [match[2] for match in _HIGHLIGHT.finditer(of.plain(reply))]
    return arguments.holds(sum(map(of.says_something, found)))


def title(reply: str, arguments: Nothing) -> bool:
    """There is a title in double angle brackets, `<<like this>>`."""
    return any(of.says_something(found) for found in _TITLE.findall(of.plain(reply)))


def sections(reply: str, arguments: Sections) -> bool:
    """There are so many sections: lines that begin with the marker and another number each, with text in them."""
    marker = r"\s+".join(map(re.escape, of.same(arguments.marker).split()))
    begin = re.compile(rf"^[ \t#*_>-]*{marker}[ \t]*(\d+|[ivxlc]+)(?![^\W_])", re.MULTILINE)
    text = unicodedata.normalize("NFC", of.plain(reply).casefold())
    found = list(begin.finditer(text))
    numbers = set()
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        if of.says_something(text[match.end() : end]):
            numbers.add(match[1])
    return arguments.holds(len(numbers))


def json(reply: str, arguments: Json) -> bool:
    """The whole reply is a JSON object or list, in a fence or not; an object has the keys asked for."""
    text = of.plain(reply).strip().lstrip("\ufeff")
    fenced = _FENCED.fullmatch(text)
    try:
        value: Any = json_module.loads(fenced[1] if fenced else text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict | list):
        return False
    if not arguments.keys:
        return True
    names = {unicodedata.normalize("NFC", key) for key in value} if isinstance(value, dict) else set()
    return all(unicodedata.normalize("NFC", key) in names for key in arguments.keys)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def placeholders(reply: str, arguments: AtLeast) -> bool:
    """There are so many placeholders in square brackets, `[like this]`; links and check boxes are none."""
    found = [inner for inner in _PLACEHOLDER.findall(of.plain(reply)) if of.same(inner) != "x"]
    return arguments.holds(sum(map(of.says_something, found)))


def postscript(reply: str, arguments: Postscript) -> bool:
    """The last paragraph is, or ends in, a line that begins with P. D. (P.D., PD:, P. S.) and says something."""
    if arguments.marker is None:
        marker = _POSTSCRIPT
    else:
        marker = r"\s?".join(map(re.escape, "".join(of.plain(arguments.marker).split())))
        marker = rf"(?i:{marker})" + (r"(?![^\W_])" if arguments.marker[-1].isalnum() else "")
    text = of.plain(reply).strip()
    last = text[text.rfind("\n\n") + 2 :] if "\n\n" in text else text
    match = re.search(rf"^[ \t*_>]*{marker}(?P<rest>.*)", last, re.MULTILINE | re.DOTALL)
    if match is None or not of.says_something(match["rest"]):
        return False
    return of.says_something(text[: len(text) - len(last) + match.start()])


def uppercase(reply: str, arguments: Nothing) -> bool:
    """All letters are capitals, and there is one."""
    found = of.letters(reply)
    return bool(found) and not any(unicodedata.category(char) in ("Ll", "Lt") for char in found)


def lowercase(reply: str, arguments: Nothing) -> bool:
    """No letter is a capital, and there is one."""
    found = of.letters(reply)
    return bool(found) and not any(unicodedata.category(char) in ("Lu", "Lt") for char in found)


def title_case(reply: str, arguments: TitleCase) -> bool:
    """Every word begins with a capital, and only with one; small words may be small, but for the first of a line."""
    some = False
    for line in of.lines(reply):
        for place, word in enumerate(word for word in of.words(line) if word[0].isalpha()):
            some = True
            small = arguments.small_words and place > 0 and of.same(word) in _SMALL and word.islower()
            if not small and not all(part[:1].isupper() and not part[1:].isupper() for part in re.split(r"[-·]", word)):
                return False
    return some


def capital_words(reply: str, arguments: Count) -> bool:
    """So many words of two letters or more are all capitals ("A" and "Y" begin sentences)."""
    found = [word for word in of.words(reply) if word.isupper() and len(of.letters(word)) > 1]
    return arguments.holds(len(found))


def quotation(reply: str, arguments: Nothing) -> bool:
    """The whole reply stands in one pair of quotation marks: «…», “…” or "…"."""
    text = of.plain(reply).strip()
    closing = _PAIRS.get(text[:1])
    if closing is None or len(text) < 2 or text[-1] != closing:
        return False
    inner = text[1:-1]
    if closing == text[0]:
        return closing not in inner and of.says_something(inner)
    depth = 0
    for char in inner:
        depth += (char == text[0]) - (char == closing)
        if depth < 0:
            return False
    return depth == 0 and of.says_something(inner)


_AROUND = " \t\n\"'«»“”‘’*_`>#"


def start_phrase(reply: str, arguments: Phrase) -> bool:
    """The reply begins with a phrase, whatever its case; marks of quotation and emphasis may stand before it."""
    text, phrase = of.same(reply), of.same(arguments.phrase)
    return any(_begins(each, phrase) for each in (text, text.lstrip(_AROUND)))


def _begins(text: str, phrase: str) -> bool:
    rest = text[len(phrase) :]
    return text.startswith(phrase) and not (phrase[-1].isalnum() and rest[:1].isalnum())


def end_phrase(reply: str, arguments: Phrase) -> bool:
    """The reply ends with a phrase and nothing else but a full stop or marks of quotation and emphasis."""
    text, phrase = of.same(reply), of.same(arguments.phrase)
    bare = text.rstrip(_AROUND)
    for each in (text, bare, bare.rstrip(".…!?").rstrip(_AROUND)):
        before = each[: len(each) - len(phrase)]
        if each.endswith(phrase) and not (phrase[0].isalnum() and before[-1:].isalnum()):
            return True
    return False


def repeat_prompt(reply: str, arguments: Prompt) -> bool:
    """The reply begins with the prompt, word for word, and goes on."""
    text, prompt = of.same(reply), of.same(arguments.prompt)
    return _begins(text, prompt) and of.says_something(text[len(prompt) :])


def two_answers(reply: str, arguments: Nothing) -> bool:
    """There are two different answers with six asterisks between."""
    answers = re.split(r"(?<!\*)\*{6}(?!\*)", of.plain(reply))
    return len(answers) == 2 and all(map(of.says_something, answers)) and len(set(map(_essence, answers))) == 2


def _essence(text: str) -> str:
    return " ".join(of.same(word) for word in of.words(text))


def no_commas(reply: str, arguments: Nothing) -> bool:
    """There is no comma, of whatever script."""
    return not any(char in _COMMAS for char in reply)


def question_marks(reply: str, arguments: AtLeast) -> bool:
    """So many questions stand in ¿…?, and no mark is without its other."""
    return _paired(reply, "¿", "?", arguments)


def exclamation_marks(reply: str, arguments: AtLeast) -> bool:
    """So many exclamations stand in ¡…!, and no mark is without its other."""
    return _paired(reply, "¡", "!", arguments)


def _paired(reply: str, opening: str, closing: str, arguments: AtLeast) -> bool:
    text = of.plain(reply)
    pair = re.compile(rf"[{opening}]+([^{opening}{closing}]+)[{closing}]+")
    found, rest = pair.findall(text), pair.sub("", text)
    if opening in rest or closing in rest:
        return False
    return arguments.holds(sum(map(of.says_something, found)))


def accented_words(reply: str, arguments: AtLeast) -> bool:
    """So many words have an accent (á é í ó ú)."""
    return arguments.holds(sum(any(char in "áéíóú" for char in word.casefold()) for word in of.words(reply)))
