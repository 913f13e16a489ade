"""Tokens at the beginning and the end that a tokenizer's configuration asks for and tokenizer.json lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError
from squtr.harness.components.encoders.sentence_transformers import SentenceTransformerEncoder
from squtr.harness.components.tokenizer_marks import lost_marks, restore_marks


def save_tokenizer(folder: Path, **asked: Any) -> Path:
    """A Llama tokenizer that adds `<s>`, with a configuration that asks for more, as e5-mistral-7b-instruct's does."""
    from transformers import LlamaTokenizer

    pieces = ["<unk>", "<s>", "</s>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    made = LlamaTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[], add_bos_token=True)
    made.pad_token = "</s>"
    made.save_pretrained(folder)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | asked))
    return folder


@pytest.fixture(scope="module")
def mistral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Mistral that takes the state of the last token."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import MistralConfig, MistralModel

    base = save_tokenizer(tmp_path_factory.mktemp("mistral") / "base")
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "initializer_range": 0.5}
    MistralModel(MistralConfig(**sizes, **heads, max_position_embeddings=64)).save_pretrained(base)
    folder = base.parent / "model"
    SentenceTransformer(modules=[Transformer(str(base)), Pooling(16, "lasttoken")], device="cpu").save(str(folder))
    return folder


def test_the_end_that_training_had_is_restored_and_in_the_spec(mistral: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel

    asking = tmp_path / "asking"
    shutil.copytree(mistral, asking)
    save_tokenizer(asking, add_eos_token=True, add_bos_token=True)
    plain, restored = (SentenceTransformerEncoder(folder, device="cpu") for folder in (mistral, asking))
    assert restored.spec.settings["restored_tokens"] == ["eos"]
    assert "restored_tokens" not in plain.spec.settings
    model = AutoModel.from_pretrained(mistral).eval()
    # <s> ▁ a b c, and </s>
    for encoder, ids in ((plain, [1, 3, 4, 5, 6]), (restored, [1, 3, 4, 5, 6, 2])):
        with torch.inference_mode():
            last = model(torch.tensor([ids])).last_hidden_state[0, -1].double().numpy()
        found = encoder.encode(["abc", "a much longer text"], role="query")[0]
        np.testing.assert_allclose(found, last / np.linalg.norm(last), atol=1e-5)
    # A text that is cut keeps its end.
    cut = SentenceTransformerEncoder(asking, device="cpu", max_tokens=4).encode(["abc", "abz"], role="query")
    np.testing.assert_allclose(cut[0], cut[1], atol=1e-6)
    assert SentenceTransformerEncoder(asking, device="cpu", max_tokens=4).model.tokenizer("a" * 9).input_ids[-1] == 2


@pytest.mark.parametrize(
    ("asked", "lost"),
    [
        ({}, ()),
        ({"add_eos_token": False}, ()),
        ({"add_bos_token": True}, ()),
        ({"add_eos_token": True}, ("eos",)),
        ({"add_eos_token": True, "eos_token": {"__type": "AddedToken", "content": "</s>"}}, ("eos",)),
        ({"add_eos_token": True, "eos_token": None}, ()),
        # transformers never read the flag for a tokenizer without a class of its own.
        ({"add_eos_token": True, "tokenizer_class": "PreTrainedTokenizerFast"}, ()),
    ],
)
def test_what_is_lost(asked: dict[str, Any], lost: tuple[str, ...], tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = save_tokenizer(tmp_path, **asked)
    assert lost_marks(folder) == lost
    tokenizer = AutoTokenizer.from_pretrained(folder)
    restore_marks(tokenizer, lost, name="tiny")
    assert tokenizer("ab", "c").tokens()[-1] == ("</s>" if lost else "c")


def test_no_tokenizer_is_nothing_lost_and_a_broken_one_is_named(tmp_path: Path) -> None:
    assert lost_marks(tmp_path) == ()
    save_tokenizer(tmp_path, add_eos_token=True)
    (tmp_path / "tokenizer.json").write_text("{]")
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        lost_marks(tmp_path)
