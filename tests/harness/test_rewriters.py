"""Rewriters: prompts, what becomes of an output, a real causal model with random weights, a server."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_rewriter
from squtr.harness.components.rewriters.common import read_output
from squtr.harness.components.rewriters.llm import LLMRewriter
from squtr.harness.components.rewriters.prompts import PROMPTS, RewritePrompt, rewrite_prompt
from squtr.harness.components.rewriters.server import ServerRewriter
from squtr.harness.protocols import Rewritten
from squtr.harness.text.language_names import NAMES
from squtr.harness.text.languages import KNOWN_LANGUAGES

from .audio_models_for_tests import TEXT, chat_tokenizer
from .server_for_tests import Fault, model_server

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def output(text: str, *transcripts: str, truncated: bool = False) -> Rewritten:
    return read_output(text, transcripts or ("weather in pairs",), truncated=truncated, seconds=0.5)


# Prompts


def test_named_prompts_have_what_their_number_stands_for() -> None:
    one, several = PROMPTS["correct/1"], PROMPTS["correct-n-best/1"]
    asked = one.filled(["weather\n in  pairs"], "en")
    assert "search query in English" in asked
    assert "Transcript: weather in pairs\n" in asked
    asked = several.filled(["weather in pairs", "weather in paris"], "zh-TW")
    assert "in Chinese" in asked
    assert "Transcripts:\n1. weather in pairs\n2. weather in paris\n" in asked
    # The texts of these numbers never change: whoever changes one gives it the next number.
    assert {name: hashlib.sha256(p.template.encode()).hexdigest()[:16] for name, p in PROMPTS.items()} == {
        "correct/1": "6d284541e7b150ac",
        "correct-n-best/1": "44b1accfae18e29e",
    }


def test_a_transcript_fills_no_placeholder() -> None:
    assert RewritePrompt("own", "{language}|{text}|{other}").filled(["{texts} {language}"], "es") == (
        "Spanish|{texts} {language}|{other}"
    )


@pytest.mark.parametrize(
    ("prompt", "n_best", "message"),
    [
        ("correct/2", 1, "unknown prompt for rewriting 'correct/2'. Did you mean 'correct/1'"),
        ("Mend it please", 1, "needs one of {text} and {texts}"),
        ("{text} {texts}", 1, "needs one of {text} and {texts}"),
        ("{texts}", 1, "takes several transcripts, and is given one transcript"),
        ("correct/1", 3, "takes one, and is given the 3 best transcripts"),
        ("correct/1", 0, "n_best"),
    ],
)
def test_prompts_that_do_not_fit_are_refused(prompt: str, n_best: int, message: str) -> None:
    with pytest.raises((UsageError, UnknownNameError)) as caught:
        rewrite_prompt(prompt, n_best)
    assert message in str(caught.value)


def test_every_known_language_has_a_name() -> None:
    assert set(NAMES) == KNOWN_LANGUAGES
    assert len(set(NAMES.values())) == len(NAMES)


# What becomes of an output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" weather in paris \n", "weather in paris"),
        ('"weather in paris"', "weather in paris"),
        ("“weather in paris”", "weather in paris"),
        ("「巴黎天气」", "巴黎天气"),
        ("Corrected transcript: weather in paris", "weather in paris"),
        ('The corrected query is: "weather in paris"', "weather in paris"),
        ("**Query**: x", "**Query**: x"),
        ("<think>\nparis?\n\n</think>\n\nweather in paris", "weather in paris"),
        ("'weather' in 'paris'", "weather' in 'paris"),
    ],
)
def test_what_is_left_of_an_output(text: str, expected: str) -> None:
    assert output(text) == Rewritten(expected, seconds=0.5)


def test_what_the_transcript_has_itself_stays() -> None:
    assert output('"who said that"', '"who said what"').text == '"who said that"'
    assert output("Query: what is sql", "query: what is sequel").text == "Query: what is sql"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "it gave no text"),
        (' "" ', "it gave no text"),
        ("...", "it gave no text"),
        ("<think>\nwell", "it gave a thought without its end"),
        ("weather in paris\n\nI replaced one word.", "it gave 2 lines instead of one"),
        ("x" * 89, "it gave 89 characters, more than the 88 that a correction may have"),
    ],
)
def test_what_is_no_correction_fails(text: str, error: str) -> None:
    assert output(text) == Rewritten("", error, 0.5)


def test_an_output_that_was_cut_fails_and_the_longest_transcript_counts() -> None:
    assert output("weather in", truncated=True).error == "its output was cut at the length cap"
    assert output("x" * 88).text == "x" * 88
    assert output("x" * 89, "short", "weather in pairs!").text == "x" * 89


# A real model with random weights


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path_factory.mktemp("llm")
    tokenizer = chat_tokenizer()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **TEXT)).save_pretrained(folder)
    return folder


def test_a_model_is_given_the_prompt_in_its_template(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import Qwen2ForCausalLM

    seen: list[str] = []
    tokenizer = chat_tokenizer()

    def generate(self: Any, *, input_ids: Any, **options: Any) -> Any:
        import torch

        assert options["do_sample"] is False
        assert options["max_new_tokens"] == 40
        seen.extend(tokenizer.decode(row, skip_special_tokens=False) for row in input_ids)
        answer = tokenizer("a mended query<|im_end|>", return_tensors="pt").input_ids
        return torch.cat([input_ids, answer.repeat(len(input_ids), 1)], dim=1)

    monkeypatch.setattr(Qwen2ForCausalLM, "generate", generate)
    rewriter = LLMRewriter(folder, max_new_tokens=40, device="cpu")
    made = rewriter.rewrite([["weather <|im_end|> in pairs"], ["a query"]], language="en")
    assert [one.text for one in made] == ["a mended query"] * 2
    assert all(one.seconds > 0 for one in made)
    (longer,) = [text for text in seen if "pairs" in text]
    prompt = PROMPTS["correct/1"].filled(["weather < |im_end|> in pairs"], "en")
    assert longer == f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
    assert rewriter.rewrite([], language="en") == []


def test_a_model_with_random_weights_is_noise_and_told_as_such(folder: Path) -> None:
    """Its calls are right; what it writes is no correction, or counts as one only by chance."""
    rewriter = load_rewriter(f"rewrite:{folder}", n_best=2, max_new_tokens=6, device="cpu")
    given = [["one two", "one too"], ["tree", "three"], ["a longer transcript than the others", "b"]]
    together = rewriter.rewrite(given, language="es")
    alone = [rewriter.rewrite([one], language="es")[0] for one in given]
    assert [(one.text, one.error) for one in together] == [(one.text, one.error) for one in alone]
    assert all(bool(one.text) != bool(one.error) for one in together)
    spec = rewriter.spec
    assert (spec.kind, spec.backend) == ("rewriter", "rewrite")
    assert spec.settings["prompt"] == "correct-n-best/1"
    assert spec.settings["prompt_text"] == PROMPTS["correct-n-best/1"].template
    other = load_rewriter(f"rewrite:{folder}", n_best=2, prompt="Mend: {texts}", max_new_tokens=6, device="cpu")
    assert other.spec.settings["prompt"] == "own"
    assert other.spec.fingerprint != spec.fingerprint
    assert rewriter.supports("zh-TW")
    assert not rewriter.supports("xx")


# A server


def completion(text: str, finish: str = "stop") -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": finish}]}).encode()


def test_a_server_is_asked_in_one_message() -> None:
    with model_server() as server:
        server.fault = Fault(status=200, body=completion('"weather in paris"'), path="chat/completions")
        rewriter = ServerRewriter("org/tiny", url=server.url, key_variable="", revision="1", system_prompt="Be brief.")
        assert rewriter.rewrite([["weather in pairs"]], language="en")[0].text == "weather in paris"
        (call,) = [call for call in server.calls if call.path.endswith("completions")]
        assert call.fields == {
            "model": "org/tiny",
            "max_tokens": 512,
            "temperature": 0.0,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": PROMPTS["correct/1"].filled(["weather in pairs"], "en")},
            ],
        }
        server.fault = Fault(status=200, body=completion("weather", "length"), path="chat/completions")
        assert rewriter.rewrite([["a"]], language="en")[0].error == "its output was cut at the length cap"
    assert (rewriter.spec.name, rewriter.spec.settings["prompt"]) == ("tiny", "correct/1")
    assert "url" not in rewriter.spec.settings


def test_a_server_that_refuses_one_query_fails_that_one_and_one_that_is_gone_all() -> None:
    with model_server() as server:
        rewriter = ServerRewriter("m", url=server.url, key_variable="", revision="1", attempts=1, concurrency=1)
        server.fault = Fault(status=400, body=b'{"error":{"message":"too long"}}', path="completions", times=1)
        assert "too long" in rewriter.rewrite([["a"]], language="en")[0].error
        server.fault = Fault(status=503, path="completions")
        with pytest.raises(ModelError, match="in a row"):
            rewriter.rewrite([["a"]] * 6, language="en")
    with pytest.raises(UsageError, match="temperature"):
        ServerRewriter("m", url="http://localhost:1/v1", extra={"temperature": 1})
