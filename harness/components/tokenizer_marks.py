"""Marks that a model's tokenizer lost: the token at the beginning or the end that its configuration asks for.

Before transformers 5, `add_eos_token` and `add_bos_token` in tokenizer_config.json decided what a tokenizer puts around
a text. Now tokenizer.json alone does, and where it says otherwise (intfloat/e5-mistral-7b-instruct), the vector of the
last token is that of another token than in training.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import ModelError

_FLAGS = {"bos": "add_bos_token", "eos": "add_eos_token"}
# The flags never meant anything to these.
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")


def lost_marks(folder: Path) -> tuple[str, ...]:
    """ "bos" and "eos", if the tokenizer's configuration in `folder` asks for it and tokenizer.json does not add it."""
    config, tokenizer = _read(folder / "tokenizer_config.json"), folder / "tokenizer.json"
    asked = [mark for mark, flag in _FLAGS.items() if config.get(flag) is True and _token(config, mark)]
    if not asked or config.get("tokenizer_class") in _GENERIC or not tokenizer.is_file():
        return ()
    added = json.dumps(_read(tokenizer).get("post_processor"), ensure_ascii=False)
    return tuple(mark for mark in asked if json.dumps(_token(config, mark), ensure_ascii=False) not in added)


def restore_marks(tokenizer: Any, marks: tuple[str, ...], *, name: str) -> None:
    """Makes a tokenizer of transformers put `marks` around a text, beside those that it puts there already.

    Raises `ModelError` if it does not.
    """
    if not marks:
        return
    before = tokenizer("a")["input_ids"]
    kept = {"bos": before[0] == tokenizer.bos_token_id, "eos": before[-1] == tokenizer.eos_token_id}
    tokenizer.add_bos_token, tokenizer.add_eos_token = (kept[mark] or mark in marks for mark in ("bos", "eos"))
    now = tokenizer("a")["input_ids"]
    if ("eos" in marks and now[-1] != tokenizer.eos_token_id) or ("bos" in marks and now[0] != tokenizer.bos_token_id):
        raise ModelError(
            f"the tokenizer of {name} ({type(tokenizer).__name__}) does not add the {' and '.join(marks)} token that "
            "its configuration asks for.",
            hint="Save the model again with a post-processor in tokenizer.json that adds it.",
        )


def _token(config: dict[str, Any], mark: str) -> str:
    token = config.get(f"{mark}_token")
    return str(token.get("content") or "") if isinstance(token, dict) else str(token or "")


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read ({error}).", hint="Take the file from the original model.") from error
    return content if isinstance(content, dict) else {}
