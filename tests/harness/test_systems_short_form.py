"""The short form: what is written, and what is said about what cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import SqutrError, UnknownNameError, UsageError
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.transcribers.presets import PRESETS
from squtr.harness.systems import Overrides, cached_retriever, load_system, load_systems
from squtr.harness.systems.entries import ComponentEntry
from squtr.harness.systems.reading import is_spec_file
from squtr.harness.systems.short_form import parse_retriever, parse_short_form

BM25 = ComponentEntry("bm25")


def dense(model: str) -> ComponentEntry:
    return ComponentEntry("dense", model)


def hybrid(method: str, *parts: ComponentEntry) -> ComponentEntry:
    return ComponentEntry("hybrid", parts=parts, options={"method": method})


def rerank(model: str, first: ComponentEntry) -> ComponentEntry:
    return ComponentEntry("rerank", model, parts=(first,))


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("bm25", BM25),
        ("dense:./a-b/c.d", dense("./a-b/c.d")),
        ("dense:BAAI/bge-m3", dense("BAAI/bge-m3")),
        ("rrf(bm25,dense:m)", hybrid("rrf", BM25, dense("m"))),
        ("score( bm25 , dense:m,splade:s )", hybrid("score", BM25, dense("m"), ComponentEntry("splade", "s"))),
        ("rrf(score(bm25, dense:a), dense:b)", hybrid("rrf", hybrid("score", BM25, dense("a")), dense("b"))),
        ("bm25 > rerank:BAAI/bge", rerank("BAAI/bge", BM25)),
        ("bm25>rerank:r", rerank("r", BM25)),
        ("bm25 > rerank:a > rerank:b", rerank("b", rerank("a", BM25))),
        ("rrf(bm25 > rerank:a, dense:m) > rerank:b", rerank("b", hybrid("rrf", rerank("a", BM25), dense("m")))),
        ("trec:runs/{subset}_{condition}.run", ComponentEntry("trec", "runs/{subset}_{condition}.run")),
    ],
)
def test_retrievers(text: str, entry: ComponentEntry) -> None:
    assert parse_retriever(text) == entry


def test_systems() -> None:
    plain = parse_short_form("whisper-base + bm25")
    assert plain.transcriber == ComponentEntry("faster-whisper", "whisper-base")
    assert plain.retriever == BM25
    assert plain == parse_short_form("faster-whisper:whisper-base+bm25")
    front = parse_short_form("wpe | whisper-base + bm25")
    assert front.front_end == ComponentEntry("wpe")
    ready = parse_short_form("transcripts:c++/a-b_{subset}.jsonl + trec:runs/x.run")
    assert ready.transcriber == ComponentEntry("transcripts", "c++/a-b_{subset}.jsonl")
    assert ready.retriever == ComponentEntry("trec", "runs/x.run")
    own = parse_short_form("class:my_module:MyTranscriber + bm25")
    assert own.transcriber == ComponentEntry("class", "my_module:MyTranscriber")


def test_systems_of_one_component() -> None:
    assert parse_short_form("trec:mine.run").retriever == ComponentEntry("trec", "mine.run")
    assert parse_short_form("clap:laion/x").encoder == ComponentEntry("clap", "laion/x")
    both = parse_short_form("wpe | chat-template:org/m")
    assert (both.encoder, both.front_end) == (ComponentEntry("chat-template", "org/m"), ComponentEntry("wpe"))
    own = "squtr.harness.components.encoders.clap:ClapEncoder"
    assert parse_short_form(f"class:{own}").encoder == ComponentEntry("class", own)
    assert parse_short_form("whisper-base").transcriber == ComponentEntry("faster-whisper", "whisper-base")
    behind = parse_short_form("wpe | ctc:org/m")
    assert (behind.transcriber, behind.front_end) == (ComponentEntry("ctc", "org/m"), ComponentEntry("wpe"))


def test_answerers() -> None:
    llm = ComponentEntry("llm", "org/m")
    assert parse_short_form("chat:org/m").answerer == ComponentEntry("chat", "org/m")
    assert parse_short_form("replies:a.jsonl").answerer == ComponentEntry("replies", "a.jsonl")
    cascade = parse_short_form("wpe | whisper-base + llm:org/m")
    assert (cascade.transcriber, cascade.answerer, cascade.retriever) == (
        ComponentEntry("faster-whisper", "whisper-base"),
        llm,
        None,
    )
    baseline = parse_short_form("text-only + llm:org/m")
    assert (baseline.answerer, baseline.text_only, baseline.transcriber) == (llm, True, None)


def test_names() -> None:
    named = parse_short_form("my own=whisper-base + bm25")
    assert (named.name, named.retriever) == ("my own", BM25)
    assert parse_short_form("people=replies:a.jsonl").name == "people"
    assert parse_short_form("trec:a=b.run").name == ""


def test_components_per_language() -> None:
    whisper, paraformer = ComponentEntry("faster-whisper", "whisper-base"), ComponentEntry("funasr", "paraformer-zh")
    entry = parse_short_form("{en: whisper-base, zh: funasr:paraformer-zh} + bm25")
    assert entry.transcriber == {"en": whisper, "zh": paraformer}
    assert entry.retriever == BM25
    alone = parse_short_form("wpe | {en:whisper-base,zh:funasr:paraformer-zh}")
    assert alone.transcriber == entry.transcriber
    both = parse_short_form("two={en: whisper-base} + {en: rrf(bm25, dense:m), zh: bm25}")
    assert both.retriever == {"en": hybrid("rrf", BM25, dense("m")), "zh": BM25}
    assert both.name == "two"
    for wrong in ("{} + bm25", "{en: whisper-base, en: ctc:x} + bm25", "{en} + bm25", "{English: whisper-base} + bm25"):
        with pytest.raises(UsageError, match="is not written as one component per language"):
            parse_short_form(wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'whisper-base'"):
        parse_short_form("{en: whisper-bas} + bm25")
    with pytest.raises(UsageError, match="is not written as"):
        parse_short_form("{en: whisper-base, zh: clap:x}")


def test_each_transcriber_behind_each_front_end() -> None:
    systems = load_systems(
        ["whisper-base", "named=whisper-base + bm25", "wpe | whisper-base", "{en: whisper-base} + bm25"],
        front_ends=["none", "spectral-gate", "spectral-gate"],
    )
    assert [system.name for system in systems] == [
        "whisper-base",
        "spectral gate | whisper-base",
        "named",
        "spectral gate | named",
        "WPE | whisper-base",
        "whisper-base + BM25",
        "spectral gate | whisper-base + BM25",
    ]
    assert systems[0].transcriber is systems[1].transcriber
    assert systems[1].without_front_end().as_dict() == systems[0].as_dict()
    assert systems[3].without_front_end().name == "named"
    with pytest.raises(UnknownNameError, match="Did you mean 'wpe'"):
        load_systems(["whisper-base"], front_ends=["vpe"])


def test_all_transcribers_decode_as_published() -> None:
    one, two = load_systems(["whisper-base", "{en: whisper-base, zh: whisper-base} + bm25"], preset="whisper-rir-mega")
    assert (one.preset, two.preset) == ("whisper-rir-mega", "whisper-rir-mega")
    assert one.model_transcriber is not None
    assert one.model_transcriber.spec.settings["compute_type"] == "float32"
    assert two.for_language("zh").transcriber is one.transcriber
    (plain,) = load_systems(
        ["whisper-base"], options=Overrides(options=PRESETS["whisper-rir-mega"].options["faster-whisper"])
    )
    assert plain.fingerprint == one.fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not written as '<transcriber> + <retriever>'"),
        ("bm25", "For example: 'whisper-base + bm25'"),
        ("rrf(bm25, dense:m)", "For example: 'whisper-base + rrf(bm25, dense:m)'"),
        ("clapp:x", "Did you mean 'clap:x'"),
        ("a + b + c", "unknown rewriter"),
        ("a + b + c + d", "is not written as"),
        (" + bm25", "is not written as"),
        ("whisper-base +", "is not written as"),
        ("| whisper-base + bm25", "nothing before '|'"),
        ("wpe | wpe | whisper-base + bm25", "has 2 front ends"),
        ("whisper-base + dense", "needs a model. Write dense:<model>"),
        ("whisper-base + bm25:x", "takes no model"),
        ("whisper base + bm25", "holds a blank"),
        ("class: + bm25", "names no class"),
        ("bm25 + whisper-base", "'bm25' is a component of another kind"),
        ("bm25 | whisper-base + bm25", "'bm25' is a component of another kind"),
        ("whisper-base + rrf(bm25)", "combines at least two"),
        ("whisper-base + rrf(bm25, bm25", "is missing at its end"),
        ("whisper-base + rrf(bm25,)", "')' stands where a retriever is expected"),
        ("whisper-base + bm25)", "')' is too much"),
        ("whisper-base + bm25 bm25", "'bm25' is too much"),
        ("whisper-base + bm25 >", "something is missing at its end"),
        ("whisper-base + bm25 > dense:x", "is no reranke"),
        ("whisper-base + rerank:x", "stands alone"),
        ("whisper-base + hybrid", "stands alone"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_short_form(text)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("whisper-bas + bm25", "whisper-base"),
        ("faster-wisper:whisper-base + bm25", "faster-whisper"),
        ("whisper-base + bm52", "bm25"),
        ("whisper-base + desne:some/very-long-model-name-that-looks-like-nothing", "dense"),
        ("whisper-base + rff(bm25, bm25)", "rrf"),
        ("vpe | whisper-base + bm25", "wpe"),
    ],
)
def test_nearest_names(text: str, guess: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean '{guess}'"):
        parse_short_form(text)


@given(st.text(alphabet="bm25dens:rf(),>|+ a", max_size=30))
def test_any_text_gives_an_entry_or_a_sentence(text: str) -> None:
    try:
        parse_short_form(text)
    except SqutrError as error:
        assert error.message.endswith(".")
        assert "\n" not in error.message


PATHS = st.text(alphabet="abcXYZ019-_./:{}~%@=", min_size=1, max_size=30)


@given(PATHS, PATHS)
def test_paths_come_through(transcripts: str, run: str) -> None:
    entry = parse_short_form(f"transcripts:{transcripts} + trec:{run}")
    assert (entry.transcriber.model, entry.retriever.model) == (transcripts, run)  # type: ignore[union-attr]


def test_a_system_is_made() -> None:
    system = load_system("whisper-base + bm25", options=Overrides(transcriber={"threads": 2}))
    assert system.kind == "cascade"
    assert system.name == "whisper-base + BM25"


def test_options_reach_the_components_that_have_them(tmp_path: Path) -> None:
    overrides = Overrides(
        options={"device": "cpu", "dtype": "bfloat16"}, transcriber={"beam_size": 3}, retriever={"k1": 1.5}
    )
    one, two = load_systems(["whisper-base + bm25", "whisper-base + dense:all-minilm-l6-v2"], options=overrides)
    assert one.kind == "cascade"
    assert two.kind == "cascade"
    assert one.transcriber is two.transcriber
    assert one.transcriber.spec.settings["beam_size"] == 3
    assert one.retriever.spec.settings["k1"] == 1.5
    assert two.retriever.spec.settings["dtype"] == "bfloat16"


def test_an_option_that_nothing_has() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'beam_size'"):
        load_system("whisper-base + bm25", options=Overrides(transcriber={"beamsize": 3}))
    with pytest.raises(UnknownNameError, match="unknown option of these systems: 'dtype'"):
        load_systems(["whisper-base + bm25"], options=Overrides(options={"dtype": "float16"}))
    with pytest.raises(UsageError, match=r"option 'beam_size' of faster-whisper is \"5\""):
        load_system("whisper-base + bm25", options=Overrides(transcriber={"beam_size": "5"}))


def test_the_cache_reaches_what_keeps_embeddings(tmp_path: Path) -> None:
    one, two = load_systems(
        ["whisper-base + dense:all-minilm-l6-v2", "whisper-base + dense:multilingual-e5-small"], cache=tmp_path
    )
    caches = [system.retriever._cache for system in (one, two)]  # type: ignore[union-attr]
    assert isinstance(caches[0], DirectoryEmbeddingCache)
    assert caches[0] is caches[1]
    assert caches[0].root == tmp_path / "embeddings"


def test_retrievers_alone(tmp_path: Path) -> None:
    assert cached_retriever("bm25", tmp_path).spec.name == "BM25"
    assert cached_retriever("dense:all-minilm-l6-v2", None).spec.backend == "dense"


def test_spec_files_are_told_from_short_forms() -> None:
    assert is_spec_file("a/b c.yaml")
    assert is_spec_file("a.JSON")
    assert not is_spec_file("transcripts:a.json + trec:b.json")
    assert not is_spec_file("trec:b.json")


def test_errors_end_with_a_full_stop_and_an_example() -> None:
    with pytest.raises(UsageError) as refused:
        load_system("nonsense")
    assert re.fullmatch(r"[^.]+\. For example: '[^']+'\.", str(refused.value))
