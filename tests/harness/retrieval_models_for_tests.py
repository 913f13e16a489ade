"""Tiny random models for retrieval: sparse encoders, late interaction, cross-encoders. Words are letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from squtr.harness.components.library_log import quiet as quiet_loading

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *".,:[]", "Q", "D"]


def save_tokenizer(folder: Path) -> Any:
    """A tokenizer that knows letters, saved and loaded."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Split("", "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=32,
    )
    fast.save_pretrained(folder)
    return fast


def config(**more: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=1.0,
        **more,
    )


def save_masked_lm(folder: Path) -> Path:
    """A BERT with a masked-language-modelling head: a SPLADE model as it is on the Hub."""
    import torch
    from transformers import BertForMaskedLM

    save_tokenizer(folder)
    torch.manual_seed(0)
    BertForMaskedLM(config()).save_pretrained(folder)
    return folder


def save_splade(folder: Path, *, prompts: dict[str, str] | None = None, inference_free: bool = False) -> Path:
    """A SPLADE model in sentence-transformers' own form."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

    base = save_masked_lm(folder / "base")
    with quiet_loading():
        encoder = SparseEncoder(str(base), device="cpu", prompts=prompts, local_files_only=True)
        if inference_free:
            import torch

            modules = list(encoder.children())
            weights = torch.rand(len(WORDS), generator=torch.Generator().manual_seed(1))
            query = SparseStaticEmbedding(tokenizer=encoder.tokenizer, weight=weights, frozen=True)
            router = Router.for_query_document(query_modules=[query], document_modules=modules)
            encoder = SparseEncoder(modules=[router], device="cpu")
        encoder.save(str(folder / "model"))
    return folder / "model"


def save_colbert(folder: Path, *, prompts: dict[str, str] | None = None, expansion: bool = False) -> Path:
    """A late-interaction model in sentence-transformers' own form."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.base.modules.dense import Dense
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from transformers import BertModel

    save_tokenizer(folder / "base")
    torch.manual_seed(0)
    BertModel(config()).save_pretrained(folder / "base")
    more: dict[str, Any] = {}
    if expansion:
        more["query_expansion"] = {"strategy": "fixed", "attend": False, "length": 12}
    with quiet_loading():
        modules = [
            Transformer(str(folder / "base"), **more),
            Dense(16, 8, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"),
            MultiVectorMask(skiplist_words=[".", ","]),
            Normalize(module_input_name="token_embeddings"),
        ]
        MultiVectorEncoder(modules=modules, device="cpu", prompts=prompts).save(str(folder / "model"))
    return folder / "model"


def save_cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    """A cross-encoder as it is on the Hub."""
    import torch
    from transformers import BertForSequenceClassification

    save_tokenizer(folder)
    torch.manual_seed(0)
    BertForSequenceClassification(config(num_labels=labels)).save_pretrained(folder)
    return folder
