"""What a folder lacks or holds too much is an error, with the libraries' own classes."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components import load_retriever, load_transcriber
from squtr.harness.components.encoders.sentence_transformers import SentenceTransformerEncoder
from squtr.harness.components.library_log import quiet
from squtr.harness.components.loading_report import HEADS, recorded_loading
from squtr.harness.components.torch_models import TorchOptions
from squtr.harness.components.transcribers.ctc import CTCTranscriber
from squtr.loaders.records import Document

from .audio_models_for_tests import save_clap, save_omni_thinker
from .ctc_for_tests import save_tiny_ctc
from .retrieval_models_for_tests import config, save_colbert, save_cross_encoder, save_masked_lm, save_tokenizer
from .whisper_for_tests import save_tiny_whisper, speechlike

OPTIONS = TorchOptions(device="cpu")


def without(source: Path, folder: Path, pattern: str) -> Path:
    """A copy of a model without the weights whose names match."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(source, folder)
    weights = load_file(folder / "model.safetensors")
    kept = {key: value for key, value in weights.items() if not re.search(pattern, key)}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT without any head, as language models come."""
    import torch
    from transformers import BertModel

    folder = tmp_path_factory.mktemp("plain") / "bert"
    save_tokenizer(folder)
    torch.manual_seed(0)
    BertModel(config()).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_whisper(tmp_path_factory.mktemp("whisper") / "tiny")


def test_a_whisper_without_a_layer_is_refused(whisper: Path, tmp_path: Path) -> None:
    kind = "AutoModelForSpeechSeq2Seq"
    OPTIONS.load_model(kind, whisper, name="tiny")
    short = without(whisper, tmp_path / "short", r"decoder\.layers\.0\.")
    lacks = r"short lacks \d\d weights of WhisperForConditionalGeneration.*random.*model\.decoder\.layers\.0\."
    with pytest.raises(ModelError, match=lacks):
        load_transcriber(f"transformers:{short}", device="cpu").transcribe([speechlike(0.5, 0)], language="en")
    OPTIONS.load_model(kind, short, name="short", absent=[r"model\.decoder\.layers\.0\."])


def test_a_ctc_model_without_its_head_is_refused(tmp_path: Path) -> None:
    from transformers import AutoModel

    whole = save_tiny_ctc(tmp_path / "whole", "wav2vec2")
    # Its checkpoints often lack what only training reads.
    OPTIONS.load_model("AutoModelForCTC", without(whole, tmp_path / "less", "masked_spec_embed"), name="less")
    bare = tmp_path / "bare"
    shutil.copytree(whole, bare)
    AutoModel.from_pretrained(whole).save_pretrained(bare)
    with pytest.raises(
        ModelError, match=r"bare lacks 2 weights of Wav2Vec2ForCTC.*lm_head\.bias.*saved as Wav2Vec2Model"
    ):
        CTCTranscriber(bare, device="cpu", languages=["en"]).transcribe([speechlike(0.5, 0)], language="en")
    with pytest.raises(ModelError, match=r"whole holds 2 weights that Wav2Vec2Model does not take \(lm_head\.bias"):
        OPTIONS.load_model("AutoModel", whole, name="whole")
    OPTIONS.load_model("AutoModel", whole, name="whole", unused=HEADS)


def test_what_a_class_computes_itself_may_be_in_the_checkpoint(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file
    from transformers import AutoModel

    folder = save_omni_thinker(tmp_path / "thinker")
    kind = "Qwen2_5OmniThinkerForConditionalGeneration"
    weights = load_file(folder / "model.safetensors")
    model = OPTIONS.load_model(kind, folder, name="thinker")
    computed = {key: value.clone() for key, value in model.named_buffers() if key not in weights}
    assert any("positional_embedding" in key for key in computed)
    save_file(weights | computed, folder / "model.safetensors", metadata={"format": "pt"})
    OPTIONS.load_model(kind, folder, name="thinker")
    # A published CLAP may lack what its class can count.
    clap = without(save_clap(tmp_path / "clap"), tmp_path / "old", "_ids$|relative_position_index|num_batches_tracked")
    old, new = (AutoModel.from_pretrained(one).state_dict() for one in (clap, tmp_path / "clap"))
    assert all(old[key].equal(new[key]) for key in new)
    OPTIONS.load_model("AutoModel", clap, name="clap")


def test_a_published_model_may_hold_what_its_vectors_do_not_need(dense: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    for name in ("someones", "gte-multilingual-base"):
        shutil.copytree(dense, tmp_path / name)
        weights = load_file(tmp_path / name / "model.safetensors")
        weights["classifier.weight"] = np.ones((1, 16), np.float32)
        save_file(weights, tmp_path / name / "model.safetensors", metadata={"format": "pt"})
    SentenceTransformerEncoder(tmp_path / "gte-multilingual-base", device="cpu").encode(["abc"], role="query")
    with pytest.raises(ModelError, match=r"someones holds 1 weight.*classifier\.weight"):
        SentenceTransformerEncoder(tmp_path / "someones", device="cpu").encode(["abc"], role="query")


def test_weights_of_another_shape_are_named(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "wider")
    settings = json.loads((bert / "config.json").read_text())
    (tmp_path / "wider" / "config.json").write_text(json.dumps({**settings, "max_position_embeddings": 48}))
    with pytest.raises(ModelError, match=r"position_embeddings\.weight: \(32, 16\), not \(48, 16\).*config\.json"):
        OPTIONS.load_model("AutoModel", tmp_path / "wider", name="wider")


def test_weights_may_be_left_by_name_and_the_spec_says_so(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path / "cross")
    with pytest.raises(ModelError, match=r"classifier\.bias.*unused_weights"):
        OPTIONS.load_model("AutoModel", folder, name="cross")
    allowed = TorchOptions(device="cpu", unused_weights=(r"classifier\.",))
    allowed.load_model("AutoModel", folder, name="cross")
    assert allowed.settings(device=False)["unused_weights"] == [r"classifier\."]
    assert "unused_weights" not in OPTIONS.settings(device=False)
    # What is missing cannot be allowed.
    with pytest.raises(ModelError, match="lacks"):
        TorchOptions(device="cpu", unused_weights=(".*",)).load_model(
            "AutoModelForSequenceClassification", without(folder, tmp_path / "half", "classifier"), name="half"
        )
    with pytest.raises(UsageError, match=r"'\(' in unused_weights"):
        TorchOptions(unused_weights=("(",))


def test_an_adapter_is_not_left_off_in_silence(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "lora")
    (tmp_path / "lora" / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(ModelError, match=r"lora holds an adapter.*merge_and_unload"):
        OPTIONS.load_model("AutoModel", tmp_path / "lora", name="lora")
    with pytest.raises(ModelError, match="lora holds an adapter"):
        OPTIONS.load_sentence_transformer("SentenceTransformer", tmp_path / "lora", name="lora")


@pytest.mark.parametrize(
    ("backend", "lack"),
    [("rerank", "a trained head"), ("colbert", "a trained projection"), ("splade", "a trained head for terms")],
)
def test_a_plain_bert_is_none_of_the_models_of_retrieval(bert: Path, backend: str, lack: str) -> None:
    options = {"first": "bm25"} if backend == "rerank" else {}
    retriever = load_retriever(f"{backend}:{bert}", device="cpu", **options)
    with pytest.raises(ModelError, match=f"bert lacks {lack}"):
        retriever.index([Document("a", "", "abc")], language="en")
        retriever.search(["abc"], k=1)


def test_a_head_that_is_named_but_not_there_is_missed(tmp_path: Path) -> None:
    folder = without(save_cross_encoder(tmp_path / "cross"), tmp_path / "headless", "classifier")
    with pytest.raises(
        ModelError, match=r"headless lacks 2 weights of BertForSequenceClassification.*classifier\.bias"
    ):
        OPTIONS.load_sentence_transformer("CrossEncoder", folder, name="headless")
    folder = without(save_masked_lm(tmp_path / "lm"), tmp_path / "mute", r"cls\.predictions\.transform")
    with pytest.raises(ModelError, match=r"mute lacks 4 weights of BertForMaskedLM.*cls\.predictions\.transform"):
        OPTIONS.load_sentence_transformer("SparseEncoder", folder, name="mute")


def test_a_model_saved_for_one_use_is_not_made_into_another(tmp_path: Path) -> None:
    model = save_colbert(tmp_path)
    for kind in ("SentenceTransformer", "SparseEncoder", "CrossEncoder"):
        with pytest.raises(ModelError, match=f"{kind} would make one.*colbert:<model>"):
            OPTIONS.load_sentence_transformer(kind, model, name="late")  # type: ignore[arg-type]


def test_a_causal_language_model_is_no_reranker(tmp_path: Path) -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = save_tokenizer(tmp_path)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), **sizes, **heads)).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="a trained head that scores pairs"):
        OPTIONS.load_sentence_transformer("CrossEncoder", tmp_path, name="qwen")


def test_pooling_is_never_made_up(bert: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    with pytest.raises(ModelError, match=r"bert does not say how.*no modules\.json.*pooling mean, cls or lasttoken"):
        SentenceTransformerEncoder(bert, device="cpu").encode(["abc"], role="query")
    tokens = AutoTokenizer.from_pretrained(bert)(["abc"], return_tensors="pt")
    with torch.inference_mode():
        states = AutoModel.from_pretrained(bert).eval()(**tokens).last_hidden_state[0].double().numpy()
    rows: dict[str, Callable[[], Any]] = {
        "mean": lambda: states.mean(axis=0),
        "cls": lambda: states[0],
        "lasttoken": lambda: states[-1],
        "max": lambda: states.max(axis=0),
    }
    prints = set()
    for pooling, row in rows.items():
        encoder = SentenceTransformerEncoder(bert, device="cpu", pooling=pooling)
        expected = row() / np.linalg.norm(row())
        np.testing.assert_allclose(encoder.encode(["abc"], role="query")[0], expected, atol=1e-5)
        assert encoder.spec.settings["pooling"] == pooling
        prints.add(encoder.spec.fingerprint)
    assert len(prints) == len(rows)
    with pytest.raises(UsageError, match="pooling 'sum' is none of mean, cls, lasttoken, max"):
        SentenceTransformerEncoder(bert, pooling="sum")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def dense(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with a projection behind its pooling, as sentence-transformers saves it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.base.modules.dense import Dense
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder = tmp_path_factory.mktemp("dense") / "model"
    torch.manual_seed(1)
    modules = [Transformer(str(bert)), Pooling(16, "mean"), Dense(16, 8)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def test_a_dense_model_without_its_projection_is_refused(dense: Path, tmp_path: Path) -> None:
    encoder = SentenceTransformerEncoder(dense, device="cpu")
    assert encoder.encode(["abc"], role="query").shape == (1, 8)
    with pytest.raises(UsageError, match="Leave pooling out"):
        SentenceTransformerEncoder(dense, device="cpu", pooling="mean").encode(["abc"], role="query")
    for part in ("2_Dense", "2_Dense/model.safetensors", "1_Pooling", "modules.json"):
        folder = tmp_path / part.replace("/", "-")
        shutil.copytree(dense, folder)
        gone = folder / part
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        with pytest.raises(ModelError, match=re.escape(folder.name)):
            SentenceTransformerEncoder(folder, device="cpu").encode(["abc"], role="query")


def test_an_activation_is_not_replaced_by_another(dense: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(dense, folder)
    file = folder / "2_Dense" / "config.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "activation_function": "someone.activations.Swish"}))
    with pytest.raises(ModelError, match=r"2_Dense of own has the activation someone\.activations\.Swish"):
        SentenceTransformerEncoder(folder, device="cpu").encode(["abc"], role="query")


def test_an_encoder_may_lack_a_pooler_that_nothing_passes(dense: Path, tmp_path: Path) -> None:
    folder = without(dense, tmp_path / "no-pooler", "pooler")
    a, b = (SentenceTransformerEncoder(one, device="cpu").encode(["abc"], role="query") for one in (dense, folder))
    assert a.tobytes() == b.tobytes()
    with pytest.raises(ModelError, match=r"no-layer lacks .*encoder\.layer\.1\."):
        folder = without(dense, tmp_path / "no-layer", r"encoder\.layer\.1\.")
        SentenceTransformerEncoder(folder, device="cpu").encode(["abc"], role="query")


def test_a_colbert_of_stanford_and_one_of_early_pylate_are_whole(bert: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    # As Stanford's library saves them: the encoder's weights below `bert.`, the projection beside them.
    folder = tmp_path / "stanford"
    shutil.copytree(bert, folder)
    weights = {f"bert.{key}": value for key, value in load_file(folder / "model.safetensors").items()}
    weights["linear.weight"] = torch.arange(128.0).reshape(8, 16) / 64
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "architectures": ["HF_ColBERT"]}))
    (folder / "artifact.metadata").write_text(json.dumps({"query_maxlen": 8, "doc_maxlen": 16, "dim": 8}))
    model = OPTIONS.load_sentence_transformer("MultiVectorEncoder", folder, name="stanford")
    assert torch.equal(model[1].linear.weight, weights["linear.weight"])
    early = tmp_path / "early"
    shutil.copytree(save_colbert(tmp_path / "late"), early)
    listed = [
        one
        for one in json.loads((early / "modules.json").read_text())
        if one["type"].endswith(("Transformer", "Dense"))
    ]
    (early / "modules.json").write_text(json.dumps(listed))
    (early / "config_sentence_transformers.json").unlink()
    OPTIONS.load_sentence_transformer("MultiVectorEncoder", early, name="early")
    (early / "modules.json").write_text(json.dumps(listed[:1]))
    with pytest.raises(ModelError, match="early lacks a trained projection"):
        OPTIONS.load_sentence_transformer("MultiVectorEncoder", early, name="early")


def test_loading_is_recorded_for_libraries_that_keep_no_report(bert: Path) -> None:
    from transformers import AutoModel, PreTrainedModel

    before = vars(PreTrainedModel)["from_pretrained"]
    with pytest.raises(ZeroDivisionError), recorded_loading() as loaded:
        AutoModel.from_pretrained(bert)
        _, report = AutoModel.from_pretrained(bert, output_loading_info=True)
        1 / 0  # noqa: B018
    assert vars(PreTrainedModel)["from_pretrained"] is before
    assert [(one.class_name, one.saved_as) for one in loaded] == [("BertModel", ("BertModel",))] * 2
    assert loaded[1].report == report


def test_warnings_of_wrong_use_are_shown_and_known_lines_not(caplog: pytest.LogCaptureFixture) -> None:
    from transformers.utils import logging as library

    logger = library.get_logger("transformers.generation.utils")
    records: list[str] = []

    class Noted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    handler = Noted()
    library.get_logger("transformers").addHandler(handler)
    try:
        with quiet():
            logger.warning("The attention mask is not set and cannot be inferred")
            logger.warning("Both `max_new_tokens` (=8) and `max_length`(=20) seem to have been set.")
        logger.warning("Both `max_new_tokens` (=8) and `max_length`(=20) seem to have been set.")
    finally:
        library.get_logger("transformers").removeHandler(handler)
    assert [line[:8] for line in records] == ["The atte", "Both `ma"]
