"""What of a reply is meant for the user: reasoning blocks and control tokens go, odd characters become plain ones."""

from __future__ import annotations

import re
import unicodedata

_TAGS = "think|thinking|thought|thoughts|reasoning|reason|analysis|scratchpad|reflection|razonamiento|pensamiento"
_BLOCK = re.compile(
    rf"""
    (?P<open> < (?:{_TAGS}) (?:\s[^<>]*)? > | \[ (?:{_TAGS}) \] | ◁ (?:{_TAGS}) ▷
            | <\| (?:begin_of_thought|begin_of_thinking|thinking|think) \|> | <\|channel>thought )
    | (?P<close> < \s* / \s* (?:{_TAGS}) \s* > | \[ / (?:{_TAGS}) \] | ◁ / (?:{_TAGS}) ▷
            | <\| (?:end_of_thought|end_of_thinking|/thinking|/think) \|> | <channel\|> )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\b[^<]*<\|message\|>|\bassistantfinal(?=\W|[A-Z]|$)")
_OTHER_CHANNEL = re.compile(r"\s*(?:<\|start\|>[^<]*)?<\|channel\|>\s*(?:analysis|commentary)\b|\s*analysis(?=[A-Z])")
_CONTROL = re.compile(
    r"<\|[A-Za-z_]{1,32}\|>|</?s>|<(?:eos|bos|pad|unk)>|</?(?:start_of_turn|end_of_turn)>|\[/?INST\]", re.IGNORECASE
)
_SQUARED = {code: chr(ord("A") + (code - base)) for base in (0x1F150, 0x1F170) for code in range(base, base + 26)}


def strip_reasoning(reply: str) -> str:
    """The reply without its reasoning blocks, and without a chat template's control tokens.

    Known are tags like `<think>…</think>`, `[THINK]…[/THINK]`, `◁think▷…◁/think▷`, and channels ("analysis", "final").
    Blocks nest. A block that is never closed goes on to the end: nothing of it was meant for the user. A closing tag
    without an opening one (templates write the opening one into the prompt) ends a block that began with the reply.

    >>> strip_reasoning("<think>A or B?</think>\\n\\nB")
    'B'
    >>> strip_reasoning("The first one… </think> B"), strip_reasoning("<think>It must be A")
    ('B', '')
    """
    finals = list(_FINAL_CHANNEL.finditer(reply))
    if finals and (finals[-1][0].startswith("<") or _OTHER_CHANNEL.match(reply)):
        reply = reply[finals[-1].end() :]
    elif _OTHER_CHANNEL.match(reply) and "<|channel|>" in reply:
        return ""
    kept: list[str] = []
    depth = at = 0
    for tag in _BLOCK.finditer(reply):
        if depth == 0:
            kept.append(reply[at : tag.start()])
        if tag["open"]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = tag.end()
    if depth == 0:
        kept.append(reply[at:])
    return _CONTROL.sub(" ", "".join(kept)).strip()


def plain_characters(text: str) -> str:
    """NFC, with line feeds for all line ends and blanks for all spaces; Ｂ, Ⓑ, ⒝, 𝐁 and 🅱 become B; invisible ones go.

    Only letters, digits and full-width signs lose their special form; ª and º stay.

    >>> plain_characters("Ｂ） ⒝ \\u200b𝐁\\u00a0🅱️ 2.ª")
    'B) (b) B B 2.ª'
    """
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", "".join(map(_plain_character, text)))


def _plain_character(char: str) -> str:
    if char.isascii() or char in "ªº":
        return char
    code = ord(char)
    if code in _SQUARED:
        return _SQUARED[code]
    category = unicodedata.category(char)
    if category in ("Zs", "Zl", "Zp"):
        return " " if category == "Zs" else "\n"
    if category == "Cf" or 0xFE00 <= code <= 0xFE0F or code == 0x20E3:
        return ""
    enclosed = 0x2460 <= code <= 0x24FF or 0x1F100 <= code <= 0x1F149
    if category[0] in "LN" or 0xFF01 <= code <= 0xFF65 or enclosed:
        return unicodedata.normalize("NFKC", char)
    return char


def skeleton(text: str) -> str:
    """`text` (NFC) without case and marks, character for character, so that positions stay: "Opción Ñ" → "opcion n".

    >>> skeleton("¿Opción Ñ?")
    '¿opcion n?'
    """
    return text.lower() if text.isascii() else "".join(map(_bare, text))


def _bare(char: str) -> str:
    lower = unicodedata.normalize("NFD", char)[0].lower()
    return lower if len(lower) == 1 else char
