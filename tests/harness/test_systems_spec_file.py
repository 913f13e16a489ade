"""Spec files: every field, what two systems share, what is refused and how it is said, and back to YAML."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, SqutrError, UnknownNameError, UsageError
from squtr.harness.systems import Overrides, System, load_system, load_systems, write_spec
from squtr.harness.systems.plain_yaml import LARGEST_BYTES, read_plain, to_yaml
from squtr.harness.systems.selecting import name_of
from squtr.harness.systems.spec_file import read_entries


def read_systems(path: Path, **options: Any) -> list[System]:
    return load_systems([str(path)], **options)


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    """Writes a spec file and returns its path."""

    def write(text: str, name: str = "spec.yaml") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text), encoding="utf-8")
        return path

    return write


def read_one(path: Path, **options: Any) -> System:
    (system,) = read_systems(path, **options)
    return system


FULL = """
    name: robust base
    front_end: {backend: spectral-gate}
    transcriber: {backend: faster-whisper, model: whisper-base, beam_size: 5, compute_type: float32}
    retriever: {backend: bm25, k1: 1.2, b: 0.5}
    n_best: 5
    n_best_fusion: score
    normalizer: raw
    script: none
"""


def test_every_field(spec: Any) -> None:
    system = read_one(spec(FULL))
    assert system.kind == "cascade"
    assert system.name == "robust base"
    assert system.front_end is not None
    assert system.front_end.spec.backend == "spectral-gate"
    settings = system.transcriber.spec.settings
    assert (settings["beam_size"], settings["compute_type"], settings["n_best"]) == (5, "float32", 5)
    assert (system.retriever.spec.settings["k1"], system.retriever.spec.settings["b"]) == (1.2, 0.5)
    assert (system.n_best, system.n_best_fusion, system.normalizer, system.script) == (5, "score", "raw", "none")


def test_json_is_the_same(spec: Any) -> None:
    (one,) = read_systems(spec(FULL))
    document = read_plain(spec(FULL))
    (two,) = read_systems(spec(json.dumps(document), "spec.json"))
    assert one.as_dict() == two.as_dict()


def test_short_forms_stand_where_components_do(spec: Any) -> None:
    system = read_one(spec("transcriber: whisper-base\nretriever: bm25\n"))
    assert system.as_dict() == load_system("whisper-base + bm25").as_dict()
    listed = read_systems(
        spec("systems: [whisper-base + bm25, {transcriber: whisper-base, retriever: {backend: bm25}}]")
    )
    assert listed[0].as_dict() == listed[1].as_dict()


def test_composites_as_entries(spec: Any) -> None:
    path = spec("""
        transcriber: whisper-base
        retriever:
          backend: hybrid
          method: rrf
          parts: [{backend: bm25, k1: 1.2}, "dense:multilingual-e5-small"]
        reranker: {backend: rerank, model: cross/encoder, depth: 50}
    """)
    (entry,) = read_entries(path)
    assert entry.retriever is not None
    assert entry.retriever.as_dict() == {
        "backend": "rerank",
        "model": "cross/encoder",
        "depth": 50,
        "parts": [
            {
                "backend": "hybrid",
                "method": "rrf",
                "parts": [{"backend": "bm25", "k1": 1.2}, {"backend": "dense", "model": "multilingual-e5-small"}],
            }
        ],
    }
    assert entry.retriever.parts[0].parts[1].place == f"{path}: retriever.parts[1]"
    chained = spec("{transcriber: whisper-base, retriever: bm25, reranker: ['rerank:a', {backend: rerank, model: b}]}")
    (entry,) = read_entries(chained)
    assert entry.retriever is not None
    assert (entry.retriever.model, entry.retriever.parts[0].model) == ("b", "a")
    short = spec("{transcriber: whisper-base, retriever: 'rrf(bm25, dense:m) > rerank:r'}")
    (entry,) = read_entries(short)
    assert entry.retriever is not None
    assert entry.retriever.parts[0].options == {"method": "rrf"}


def test_presets(spec: Any) -> None:
    path = spec("""
        transcriber: {backend: faster-whisper, model: whisper-base, preset: whisper-rir-mega, beam_size: 2}
        retriever: bm25
    """)
    system = read_one(path)
    assert system.kind == "cascade"
    settings = system.transcriber.spec.settings
    assert (settings["compute_type"], settings["beam_size"]) == ("float32", 2)
    wrong = spec("transcriber: {backend: faster-whisper, model: whisper-base, preset: squtrr}\nretriever: bm25\n")
    with pytest.raises(UnknownNameError, match=r"spec\.yaml: transcriber: unknown preset 'squtrr'.*'squtr'"):
        read_systems(wrong)


def test_a_grid_shares_its_components(spec: Any) -> None:
    systems = read_systems(
        spec("""
        systems:
        - grid:
            transcribers:
            - whisper-base
            - {backend: faster-whisper, model: whisper-base, beam_size: 5}
            retrievers: [bm25, "dense:all-minilm-l6-v2", {backend: bm25, k1: 1.2}]
            front_ends: [none, spectral-gate]
          normalizer: raw
        - {transcriber: {backend: faster-whisper, model: whisper-base}, retriever: bm25, name: again}
    """)
    )
    assert len(systems) == 2 * 3 * 2 + 1
    cascades = [system for system in systems if system.kind == "cascade"]
    assert len({id(system.transcriber) for system in cascades}) == 2
    assert len({id(system.retriever) for system in cascades}) == 3
    assert len({id(system.front_end) for system in cascades if system.front_end}) == 1
    assert {system.normalizer for system in cascades[:-1]} == {"raw"}
    assert [system.front_end is None for system in cascades] == [True] * 6 + [False] * 6 + [True]


def test_components_with_names(spec: Any) -> None:
    systems = read_systems(
        spec("""
        grid:
          transcribers:
          - {backend: faster-whisper, model: whisper-base, beam_size: 5, name: wide}
          - {backend: faster-whisper, model: whisper-base, beam_size: 5}
          retrievers: [bm25, {backend: bm25, k1: 1.2, name: "k1 1.2"}]
          front_ends: [{backend: spectral-gate, name: gate}]
        n_best: 2
    """)
    )
    assert [system.name for system in systems] == [
        "gate | wide + BM25 (2-best)",
        "gate | wide + k1 1.2 (2-best)",
        "gate | whisper-base + BM25 (2-best)",
        "gate | whisper-base + k1 1.2 (2-best)",
    ]
    cascades = [system for system in systems if system.kind == "cascade"]
    assert len({id(system.transcriber) for system in cascades}) == 1
    again = read_one(spec(write_spec(systems[1]), "again.yaml"))
    assert again.as_dict() == systems[1].as_dict()
    named = read_one(spec("{transcriber: {backend: faster-whisper, model: m, name: x}, retriever: bm25, name: y}"))
    assert named.name == "y"


def test_a_grid_of_encoders(spec: Any) -> None:
    entries = read_entries(spec("grid: {encoders: ['clap:a', 'clap:b'], front_ends: [null, {backend: wpe, taps: 10}]}"))
    assert [(e.encoder.model, e.front_end is None) for e in entries if e.encoder] == [
        ("a", True),
        ("b", True),
        ("a", False),
        ("b", False),
    ]


def heard(fields: str) -> str:
    """A system with these fields beside a transcriber and a retriever."""
    return f"{{transcriber: whisper-base, retriever: bm25, {fields}}}"


def found(retriever: str) -> str:
    """A system with this retriever."""
    return f"{{transcriber: whisper-base, retriever: {retriever}}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "holds a list where fields are expected"),
        ("", "holds nothing where fields are expected"),
        ("systems: []", "systems is []: a list of systems is expected"),
        ("{systems: [whisper-base + bm25], name: a}", "name stands beside systems"),
        ("systems: [1]", "systems[0] is a number where the fields of a system are expected"),
        (
            "transcribr: whisper-base",
            "transcribr = \"whisper-base\": unknown field 'transcribr'. Did you mean 'transcriber'?",
        ),
        ("retriever: bm25", "has retriever. A system has"),
        ("name: a", "has no component. A system has"),
        (heard("encoder: 'clap:x'"), "has transcriber and retriever and encoder"),
        ("{encoder: 'clap:x', reranker: 'rerank:y'}", "reranker has no retriever before it"),
        ("{encoder: 'clap:x', n_best: 2}", "n_best is for transcripts, and encoder gives none"),
        ("{run: 'trec:x', front_end: wpe}", "a front end (WPE) has nothing to work on before precomputed output"),
        (heard("n_best: five"), 'n_best is "five": input should be a valid integer'),
        (heard("n_best: 0"), "n_best is 0: input should be greater than or equal to 1"),
        (heard("n_best: true"), "n_best is true: input should be a valid integer"),
        (heard("script: off"), "script is \"off\": input should be 'auto'"),
        (heard("normalizer: raww"), "unknown normalizer 'raww'. Did you mean 'raw'?"),
        (heard("name: 7"), "name is 7: input should be a valid string"),
        (heard("name: '..'"), "the name '..' of a system cannot be shown"),
        ("{transcriber: 5, retriever: bm25}", "transcriber is 5: a component is expected"),
        ("{transcriber: {model: x}, retriever: bm25}", 'has neither a backend nor languages alone ("model")'),
        ("{transcriber: {}, retriever: bm25}", "has retriever. A system has"),
        ("{transcriber: {en: whisper-base, model: x}, retriever: bm25}", 'nor languages alone ("model")'),
        (
            "{transcriber: {en: whisper-base, backend: server}, retriever: bm25}",
            "the transcriber 'server' needs a model",
        ),
        ("{transcriber: {en: whisper-base, zh: null}, retriever: bm25}", "transcriber.zh is empty"),
        ("{transcriber: {en: whisper-base, zh: wisper-base}, retriever: bm25}", "transcriber.zh: unknown transcriber"),
        (found("{en: {backend: bm25, k1: x}, zh: bm25}"), 'retriever.en.k1 is "x"'),
        ("{transcriber: {en: whisper-base}, retriever: {zh: bm25}}", "have no language in common"),
        (
            "{answerer: 'embedder:all-minilm-l6-v2', templates: {transcrit: x}}",
            "unknown template 'transcrit'. Did you mean 'transcript'?",
        ),
        (heard("templates: {transcript: 'x {text}'}"), "templates are for the prompt of an answerer"),
        (
            "{transcriber: whisper-base, answerer: 'embedder:all-minilm-l6-v2', text_only: true}",
            "the text-only baseline is an answerer alone",
        ),
        (
            "{transcriber: {backend: [x]}, retriever: bm25}",
            'transcriber.backend is ["x"]: input should be a valid string',
        ),
        (
            "{transcriber: {backend: faster-whispr, model: x}, retriever: bm25}",
            "transcriber: unknown transcriber 'faster-whispr:x'. Did you mean 'faster-whisper'?",
        ),
        (
            "{transcriber: {backend: faster-whisper}, retriever: bm25}",
            "transcriber: the transcriber 'faster-whisper' needs a model",
        ),
        ("{transcriber: bm25, retriever: bm25}", "transcriber: 'bm25' is a component of another kind"),
        (found("{backend: bm25, k2: 1}"), "retriever.k2: unknown option of bm25: 'k2'. Did you mean 'k1'?"),
        (found("{backend: bm25, k1: high}"), 'retriever.k1 is "high": input should be a valid number'),
        (found("{backend: bm25, k1: -1}"), "retriever: BM25 needs k1 of at least 0, not -1"),
        (found("{backend: bm25, parts: [bm25]}"), "retriever: bm25 has no parts"),
        (found("{backend: hybrid, parts: [bm25]}"), "retriever: a hybrid combines at least two"),
        (
            found("{backend: hybrid, parts: [bm25, {backend: dense, model: 5}]}"),
            "retriever.parts[1].model is 5: input should be a valid string",
        ),
        (found("{backend: hybrid, parts: [bm25, null]}"), "retriever.parts[1] is null"),
        (found("{backend: hybrid, parts: [bm25, {backend: bm25, k1: x}]}"), 'retriever.parts[1].k1 is "x"'),
        (found("{backend: bm25, name: 5}"), "retriever: the name 5 of a component is no text"),
        (
            found("{backend: hybrid, parts: [{backend: bm25, name: x}, bm25]}"),
            "retriever: a part of hybrid has no name of its own",
        ),
        (found("{backend: rerank, model: x}"), "retriever: a reranker needs one retriever before it, not 0"),
        (heard("reranker: bm25"), 'reranker is "bm25": a reranker without parts is expected'),
        (heard("reranker: [null]"), "reranker[0] is null: a reranker"),
        ("{run: bm25}", "run: 'bm25' is no precomputed run"),
        ("grid: 5", "grid is 5: fields are expected"),
        ("grid: {retrievers: [bm25]}", "grid has retrievers. A grid has"),
        (
            "grid: {transcribers: [whisper-base], retrievers: [bm25], encoders: ['clap:x']}",
            "grid has transcribers and retrievers and encoders",
        ),
        (
            "grid: {retriever: [bm25]}",
            "grid.retriever = [\"bm25\"]: unknown field 'retriever'. Did you mean 'retrievers'?",
        ),
        (
            "grid: {transcribers: [whisper-base], retrievers: [bm25, bm26]}",
            "grid.retrievers[1]: unknown retriever 'bm26'",
        ),
        (
            "grid: {transcribers: [whisper-base], retrievers: [bm25], front_ends: []}",
            "grid has transcribers and retrievers.",
        ),
        ("{grid: {transcribers: [whisper-base], retrievers: [bm25]}, name: x}", "name = \"x\": unknown field 'name'"),
        ("{grid: {encoders: ['clap:x']}, n_best: 2}", "n_best is for searching with transcripts, and encoder does not"),
        (
            "systems: [{transcriber: whisper-base, retriever: {backend: bm25, k2: 1}}]",
            "systems[0].retriever.k2: unknown option",
        ),
        ("systems: [whisper-base + bm25, bm25]", "systems[1]: the system 'bm25' is not written as"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(spec: Any, text: str, message: str) -> None:
    path = spec(text)
    with pytest.raises(UsageError) as refused:
        read_systems(path)
    assert str(refused.value).startswith(str(path))
    assert message in str(refused.value)
    assert str(refused.value).count(str(path)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: the field 'a' stands there twice"),
        ("a: {b: 1, b: 2}", "line 1: the field 'b' stands there twice"),
        ("a: !!python/object/apply:os.system ['true']", "tag !!python/object/apply:os.system is not allowed"),
        ("a: !!python/name:os.system ''", "tag !!python/name:os.system is not allowed"),
        ("a: !mine 1", "tag !mine is not allowed"),
        ("a: !!set {b}", "tag !!set is not allowed"),
        ("a: !!binary aGk=", "tag !!binary is not allowed"),
        ("1: a", "a field's name is no text"),
        ("a: [1", "line 1: "),
        ("a: &x [*x]", "holds more than"),
        ("--- {a: 1}\n--- {b: 2}\n", "holds more than one document"),
        ("a: .nan", "a is nan"),
        ("a: [1, -.inf]", "a[1] is -inf"),
        ("[" * 3000, "nested too deeply"),
    ],
)
def test_what_is_no_plain_yaml(spec: Any, text: str, message: str) -> None:
    path = spec(text)
    with pytest.raises(DataError) as refused:
        read_systems(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_files_that_cannot_be_read(spec: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.yaml does not exist"):
        read_systems(tmp_path / "no.yaml")
    with pytest.raises(DataError, match="cannot be read"):
        read_entries(tmp_path)
    with pytest.raises(DataError, match="is larger than"):
        read_systems(spec("a: " + "x" * LARGEST_BYTES))
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_systems(tmp_path / "latin.yaml")
    with pytest.raises(DataError, match=r"spec\.json, line 1: not JSON"):
        read_systems(spec("{a", "spec.json"))
    with pytest.raises(DataError, match="the field 'a' stands there twice"):
        read_systems(spec('{"a": 1, "a": 2}', "spec.json"))
    with pytest.raises(DataError, match="nested too deeply"):
        read_systems(spec("[" * 100_000, "spec.json"))


def test_aliases_cannot_grow(spec: Any) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(DataError, match="holds more than"):
        read_systems(spec("\n".join(lines)))


def test_aliases_and_merges_are_fine(spec: Any) -> None:
    path = spec("""
        systems:
        - {transcriber: &whisper {backend: faster-whisper, model: whisper-base}, retriever: bm25}
        - {transcriber: {<<: *whisper, beam_size: 2}, retriever: bm25, name: narrow}
    """)
    one, two = read_systems(path)
    assert one.kind == "cascade"
    assert two.kind == "cascade"
    assert (one.transcriber.spec.settings["beam_size"], two.transcriber.spec.settings["beam_size"]) == (5, 2)


def test_words_mean_what_they_say(spec: Any) -> None:
    words = read_plain(
        spec("{a: no, b: 2024-01-01, c: 1e-3, d: 1:30, e: 010, f: on, g: 1_000, h: true, i: ~, j: 0x1F}")
    )
    assert words == {
        "a": "no", "b": "2024-01-01", "c": 0.001, "d": "1:30", "e": "010", "f": "on", "g": "1_000", "h": True,
        "i": None, "j": "0x1F",
    }  # fmt: skip


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("plain") / "value.yaml"
    path.write_bytes(to_yaml(value).encode("utf-8", "surrogatepass"))
    assert read_plain(path) == value


SECRETS = [
    ("{transcriber: {backend: server, model: m, api_key: s3cr3t}, retriever: bm25}", "transcriber.api_key"),
    ("{transcriber: {backend: server, model: m, extra: {token: s3cr3t}}, retriever: bm25}", "transcriber.extra.token"),
    ("{transcriber: {backend: server, model: m, APIKEY: s3cr3t}, retriever: bm25}", "transcriber.APIKEY"),
    ("{transcriber: {backend: server, model: m, url: 'http://me:s3cr3t@host/v1'}, retriever: bm25}", "transcriber.url"),
    ("systems: [{transcriber: {backend: server, model: sk-s3cr3ts3cr3ts3cr3t}}]", "systems[0].transcriber.model"),
    ("{transcriber: {backend: server, model: m, extra: {a: 'Bearer s3cr3ts3cr3t'}}}", "transcriber.extra.a"),
    ("{transcriber: {backend: server, model: hf_s3cr3ts3cr3ts3cr3t}}", "transcriber.model"),
]


@pytest.mark.parametrize(("text", "place"), SECRETS)
def test_keys_are_refused_and_not_shown(spec: Any, text: str, place: str) -> None:
    path = spec(text)
    with pytest.raises(UsageError, match="key_variable") as refused:
        read_systems(path)
    assert str(refused.value).startswith(f"{path}: {place} looks like a key or password")
    assert "s3cr3t" not in str(refused.value)


def test_a_key_in_the_place_of_its_variable(spec: Any) -> None:
    with pytest.raises(UsageError, match="is no name of an environment variable") as refused:
        read_systems(spec("{transcriber: {backend: server, model: m, key_variable: sk-s3cr3t}, retriever: bm25}"))
    assert "s3cr3t" not in str(refused.value)


def test_options_that_only_sound_like_keys(spec: Any) -> None:
    path = spec("""
        transcriber: {backend: server, model: m, url: "http://localhost:8000/v1", revision: "1", key_variable: MY_KEY}
        retriever: {backend: dense, model: all-minilm-l6-v2, max_tokens: 100, token_budget: 512}
    """)
    assert len(read_systems(path)) == 1


def test_trust_is_for_the_command_line(spec: Any) -> None:
    text = "{transcriber: whisper-base, retriever: {backend: dense, model: all-minilm-l6-v2, trust_remote_code: true}}"
    with pytest.raises(UsageError, match=r"retriever\.trust_remote_code cannot stand in a file.*--trust-remote-code"):
        read_systems(spec(text))
    path = spec("{transcriber: whisper-base, retriever: 'dense:all-minilm-l6-v2'}")
    trusting = read_one(path, options=Overrides(trust_remote_code=True))
    careful = read_one(path)
    assert trusting.kind == "cascade"
    assert careful.kind == "cascade"
    assert trusting.retriever._encoder._torch.trust_remote_code is True  # type: ignore[union-attr]
    assert careful.retriever._encoder._torch.trust_remote_code is False  # type: ignore[union-attr]
    assert "trust" not in write_spec(trusting)


def test_overrides_go_before_the_file(spec: Any) -> None:
    path = spec("{transcriber: {backend: faster-whisper, model: whisper-base, beam_size: 5}, retriever: bm25}")
    system = read_one(path, options=Overrides(transcriber={"beam_size": 2}))
    assert system.kind == "cascade"
    assert system.transcriber.spec.settings["beam_size"] == 2
    assert "beam_size: 2" in write_spec(system)
    with pytest.raises(UnknownNameError, match="unknown option of these systems: 'beem'"):
        read_systems(path, options=Overrides(options={"beem": 2}))


def test_files_and_short_forms_share(spec: Any) -> None:
    path = spec("{transcriber: whisper-base, retriever: {backend: bm25, k1: 1.2}, name: other}")
    one, two = load_systems(["whisper-base + bm25", str(path)])
    assert one.kind == "cascade"
    assert two.kind == "cascade"
    assert one.transcriber is two.transcriber
    assert one.retriever is not two.retriever


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        "{transcriber: whisper-base, retriever: bm25}",
        "{transcriber: {backend: faster-whisper, model: whisper-base, preset: squtr}, script: simplified,"
        " retriever: 'dense:all-minilm-l6-v2'}",
        "{transcriber: {backend: server, model: m, url: 'http://localhost:1/v1', revision: '1', languages: [en, 'no']},"
        " retriever: bm25, name: '1e3'}",
    ],
)
def test_written_and_read_back(spec: Any, text: str) -> None:
    system = read_one(spec(text))
    written = write_spec(system)
    again = read_one(spec(written, "again.yaml"))
    assert again.as_dict() == system.as_dict()
    assert write_spec(again) == written


def test_a_component_made_by_hand_cannot_be_written() -> None:
    from dataclasses import replace

    from squtr.harness.components.retrievers.bm25 import BM25Retriever

    system = load_system("whisper-base + bm25")
    assert system.kind == "cascade"
    assert "script: none" in write_spec(replace(system, script="none"))
    with pytest.raises(UsageError, match="how its BM25Retriever was made is not known"):
        write_spec(replace(system, retriever=BM25Retriever(k1=1.0)))


OWN = """
from squtr.harness.protocols import ComponentSpec, Transcript

class Shout:
    sample_rate = 16_000

    def __init__(self, word="hello", times=1):
        self.word = word * times
        self.spec = ComponentSpec("transcriber", "class", "shout", revision="1", settings={"word": self.word})

    def supports(self, language):
        return True

    def transcribe(self, clips, *, language):
        return [Transcript(self.word) for _ in clips]

def delete_everything(path):
    open(path, "w").close()
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_systems_module.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_systems_module", raising=False)
    return "own_systems_module"


def test_a_class_of_ones_own(spec: Any, own_module: str) -> None:
    path = spec(
        f"{{transcriber: {{backend: class, model: '{own_module}:Shout', word: hey, times: 2}}, retriever: bm25}}"
    )
    system = read_one(path)
    assert system.kind == "cascade"
    assert system.transcriber.spec.settings["word"] == "heyhey"
    assert system.name == "shout + BM25"
    assert read_one(spec(write_spec(system), "again.yaml")).as_dict() == system.as_dict()
    assert load_system(f"class:{own_module}:Shout + bm25").name == "shout + BM25"
    wrong = spec(f"{{transcriber: {{backend: class, model: '{own_module}:Shout', loud: 1}}, retriever: bm25}}")
    with pytest.raises(UsageError, match=r"transcriber: .*loud"):
        read_systems(wrong)


@pytest.mark.parametrize("what", ["own_systems_module:delete_everything", "subprocess:Popen", "os:system"])
def test_a_file_calls_no_function_and_no_other_class(spec: Any, own_module: str, tmp_path: Path, what: str) -> None:
    target = tmp_path / "gone"
    options = {"own_systems_module:delete_everything": "path", "subprocess:Popen": "args", "os:system": "command"}
    value = str(target) if "own" in what else f"touch {target}"
    path = spec(f"{{transcriber: {{backend: class, model: '{what}', {options[what]}: '{value}'}}, retriever: bm25}}")
    with pytest.raises(UsageError, match="is no class with the method transcribe or transcripts"):
        read_systems(path)
    assert not target.exists()


def test_any_wrong_file_gives_a_sentence(spec: Any) -> None:
    for text in ("~", "5", "'x'", "[]", "{}", "systems: {}", "systems: [[]]", "grid: ~", "{grid: {}}", "{encoder: {}}"):
        with pytest.raises(SqutrError):
            read_systems(spec(text))


def test_components_per_language(spec: Any) -> None:
    path = spec("""
        transcriber:
          en: {backend: faster-whisper, model: whisper-base, beam_size: 3}
          zh: whisper-tiny.en
        retriever: {en: bm25, zh: {backend: hybrid, method: score, parts: [bm25, {backend: bm25, k1: 2}]}}
        front_end: {en: spectral-gate, zh: wpe}
    """)
    system = read_one(path)
    assert system.languages == ("en", "zh")
    assert [one.components("")["front_end"]["backend"] for one in system.distinct] == ["spectral-gate", "wpe"]
    assert [one.components("")["retriever"]["backend"] for one in system.distinct] == ["bm25", "hybrid"]
    written = write_spec(system)
    again = read_one(spec(written, "again.yaml"))
    assert again.as_dict() == system.as_dict()
    assert write_spec(again) == written
    shared = read_one(spec("{transcriber: {en: whisper-base, zh: {backend: faster-whisper, model: whisper-base}}}"))
    assert shared.for_language("en").transcriber is shared.for_language("zh").transcriber
    several = read_one(spec("{transcriber: {en: whisper-base, zh: whisper-base}, retriever: bm25, n_best: 3}"))
    assert several.components("zh")["transcriber"]["settings"]["n_best"] == 3
    two = read_systems(
        spec("grid: {transcribers: [whisper-base, {en: whisper-base, zh: whisper-tiny.en}], retrievers: [bm25]}")
    )
    assert [one.languages for one in two] == [(), ("en", "zh")]


def test_answerers_in_a_file(spec: Any) -> None:
    path = spec("""
        systems:
        - transcriber: whisper-base
          answerer: {backend: embedder, model: all-minilm-l6-v2}
          templates: {transcript: "{text}"}
        - {answerer: "embedder:all-minilm-l6-v2", text_only: true}
        - text-only + embedder:all-minilm-l6-v2
    """)
    one, two, three = read_systems(path)
    assert one.answerer is two.answerer
    assert (one.templates, two.text_only, three.text_only) == ({"transcript": "{text}"}, True, True)
    for system in (one, two, three):
        again = read_one(spec(write_spec(system), "again.yaml"))
        assert again.as_dict() == system.as_dict()
    grid = read_systems(
        spec("grid: {transcribers: [whisper-base, whisper-tiny.en], answerers: ['embedder:all-minilm-l6-v2']}")
    )
    assert {one.kind for one in grid} == {"answerer"}
    assert len(grid) == 2
    assert len(read_systems(spec("grid: {transcribers: [whisper-base], front_ends: [none, wpe]}"))) == 2


def test_a_given_name_leaves_the_baseline_and_the_n_best_in_the_systems_name(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(
        "systems:\n"
        "- {answerer: {backend: embedder, model: multilingual-e5-small, name: E5}, text_only: true}\n"
        "- {transcriber: {backend: faster-whisper, model: whisper-base, name: W}, retriever: bm25, n_best: 3}\n"
    )
    names = ["text-only + E5", "W + BM25 (3-best)"]
    assert [system.name for system in read_systems(path)] == names
    assert [name_of(entry).lower() for entry in read_entries(path)] == [name.lower() for name in names]
