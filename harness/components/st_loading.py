"""Models of sentence-transformers, loaded whole.

The library makes a model of any folder: where the folder has none, it adds a mean over tokens, a random projection or a
random head, and says so in a log at most. Here that is refused, or asked for by name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import ModelError, UsageError, missing_extra
from .loading_report import HEADS, POOLERS, check_loading, recorded_loading, refuse_adapter
from .tokenizer_marks import lost_marks, restore_marks

ModelKind = Literal["SentenceTransformer", "SparseEncoder", "MultiVectorEncoder", "CrossEncoder"]
TokenPooling = Literal["mean", "cls", "lasttoken", "max"]

_BACKENDS = {
    "SentenceTransformer": "dense",
    "CrossEncoder": "rerank",
    "SparseEncoder": "splade",
    "MultiVectorEncoder": "colbert",
}
# PyLate's name for a late-interaction model.
_ALIASES = {"ColBERT": "MultiVectorEncoder"}


@dataclass(frozen=True, slots=True)
class SavedModel:
    """What the files of a folder say: the `modules` by class name (None without modules.json), the class of
    sentence-transformers that saved it ("" if it does not say), and the classes of transformers.
    """

    modules: tuple[str, ...] | None
    kind: str
    architectures: tuple[str, ...]

    @classmethod
    def in_folder(cls, folder: Path) -> SavedModel:
        listed = _read(folder / "modules.json")
        settings, config = _read(folder / "config_sentence_transformers.json"), _read(folder / "config.json")
        kind = str((settings or {}).get("model_type") or "")
        modules = None if listed is None else tuple(str(one["type"]).rpartition(".")[2] for one in listed)
        return cls(modules, _ALIASES.get(kind, kind), tuple((config or {}).get("architectures") or ()))

    def ends_with(self, *suffixes: str) -> bool:
        return any(name.endswith(suffixes) for name in self.architectures)

    def lack(self, kind: ModelKind) -> str:
        """What a model of class `kind` would need that the library would make up; "" for nothing.

        >>> SavedModel(None, "", ("BertModel",)).lack("MultiVectorEncoder")
        'a trained projection of its tokens'
        >>> SavedModel(None, "", ("BertForSequenceClassification",)).lack("CrossEncoder")
        ''
        """
        if self.kind == kind and self.modules is not None:
            return ""
        if kind == "CrossEncoder":
            # A language model would be read through the words "yes" and "no", without the prompt that it learned.
            return "" if self.ends_with("ForSequenceClassification") else "a trained head that scores pairs"
        if kind == "MultiVectorEncoder":
            own = self.ends_with("HF_ColBERT", "ForRetrieval") if self.modules is None else self._is_early_pylate
            return "" if own else "a trained projection of its tokens"
        if kind == "SparseEncoder":
            return "" if self.modules is None and self.ends_with("ForMaskedLM") else "a trained head for terms"
        return f"the modules of a {kind}" if self.modules is not None and self.kind not in ("", kind) else ""

    @property
    def _is_early_pylate(self) -> bool:
        """As PyLate saved its models before it named their kind: a projection, and no pooling."""
        return not self.kind and "Dense" in (self.modules or ()) and "Pooling" not in (self.modules or ())


def load_whole(
    kind: ModelKind,
    folder: Path,
    *,
    name: str,
    pooling: TokenPooling | None = None,
    unused: Sequence[str] = (),
    **arguments: Any,
) -> Any:
    """The model in `folder`, of sentence-transformers' class `kind`, which gets `arguments`.

    `pooling` makes one vector of the vectors of tokens for a folder that does not say how. Raises `ModelError` for a
    folder that lacks a part, `UsageError` for a `pooling` that a model has already.
    """
    try:
        import sentence_transformers
        from sentence_transformers.sentence_transformer.modules import Pooling
    except ImportError as error:
        raise missing_extra(error.name or "sentence_transformers", "torch") from error
    refuse_adapter(folder, name=name)
    saved = SavedModel.in_folder(folder)
    lack = saved.lack(kind)
    if lack:
        known = _BACKENDS.get(saved.kind or "SentenceTransformer", "dense")
        advice = f"Use it as {known}:<model>, or give" if known != _BACKENDS[kind] else "Give"
        raise ModelError(
            f"{name} lacks {lack}: {kind} would make one of random or unfit weights.",
            hint=f"{advice} a model that was trained and saved as {kind}.",
        )
    if pooling is not None and saved.modules is not None:
        raise UsageError(f"{name} says itself what becomes of the vectors of its tokens.", hint="Leave pooling out.")
    if not arguments.get("trust_remote_code"):
        _refuse_activations(folder, name=name)
    with recorded_loading() as loaded:
        model = getattr(sentence_transformers, kind)(str(folder), **arguments)
    poolings = [module for module in model.modules() if isinstance(module, Pooling)]
    if saved.modules is None and poolings:
        if pooling is None:
            raise ModelError(
                f"{name} does not say how the vectors of its tokens become one: it has no modules.json.",
                hint="Give a model that was saved by sentence-transformers, or say what its authors do: pooling mean, "
                "cls or lasttoken.",
            )
        model[1] = Pooling(poolings[0].get_embedding_dimension(), pooling_mode=pooling)
    # The pooler gives a vector of its own, which only few models use.
    absent = POOLERS if kind != "CrossEncoder" and not _uses_pooler(model) else ()
    left = () if kind == "CrossEncoder" else HEADS
    if "HF_ColBERT" in saved.architectures:
        left = (*left, r"linear\.weight")  # the projection, which is a module of its own
    tokenizer = getattr(model, "tokenizer", None)
    if callable(tokenizer):
        restore_marks(tokenizer, lost_marks(folder), name=name)
    for one in loaded:
        check_loading(one, name=name, unused=(*left, *unused), absent=absent)
    return model


def _refuse_activations(folder: Path, *, name: str) -> None:
    """Raises `ModelError` for an activation that is not torch's: without its code, the library would take a tanh."""
    for listed in _read(folder / "modules.json") or ():
        if str(listed["type"]).endswith(".Dense"):
            activation = str(
                (_read(folder / listed["path"] / "config.json") or {}).get("activation_function", "torch.")
            )
            if not activation.startswith("torch."):
                raise ModelError(
                    f"the part {listed['path']} of {name} has the activation {activation}, which is code of its own.",
                    hint="If you trust that code, give trust_remote_code=True (--trust-remote-code).",
                )


def _uses_pooler(model: Any) -> bool:
    return any("pooler_output" in str(getattr(module, "modality_config", "")) for module in model.modules())


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read ({error}).", hint="Take the file from the original model.") from error
