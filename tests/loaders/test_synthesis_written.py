"""From written to spoken form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.loaders.synthesis.written import spoken_form


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("en", "It costs $50 or £1.", "It costs 50 dollars or 1 pound."),
        ("en", "£2.50, $3.00 or €1.05", "2 pounds 50, 3 dollars or 1 euro 05"),
        ("es", "2,50 €", "2 euros con 50"),
        ("en", "a $2.5 million fund", "a 2.5 million dollars fund"),
        ("en", "€1,250 at 2.5%", "1,250 euros at 2.5 percent"),
        ("en", "before 1960?", "before 19 60?"),
        ("en", "in 1905, 1900 and 2024", "in 19 oh 5, 1900 and 2024"),
        ("en", "about 1,234 or £1234", "about 1,234 or 1234 pounds"),
        ("en", "on 30 May", "on the 30th of May"),
        ("en", "the 2nd of June, March 3 and July 11", "the 2nd of June, March 3rd and July 11th"),
        ("en", "You may 30 times", "You may 30 times"),
        (
            "en",
            "50 mg, 15 km/h, 3 km and 20°C",
            "50 milligrams, 15 kilometers per hour, 3 kilometers and 20 degrees Celsius",
        ),
        ("en", "a 5 gold coin", "a 5 gold coin"),
        ("es", "Son 60 € o $5", "Son 60 euros o 5 dólares"),
        ("es", "el 1 de enero", "el primero de enero"),
        ("es", "21 días, 31 semanas y 41 euros", "veintiún días, treinta y una semanas y cuarenta y un euros"),
        ("es", "el 21 de marzo a las 11 horas", "el 21 de marzo a las 11 horas"),
        ("es", "al 2,5 %", "al 2,5 por ciento"),
        ("zh", "二〇二四年👍", "二零二四年"),
        ("en", "Hi 👍🏽 there\u200b", "Hi there"),
        ("fr", "10 % 🙂", "10 %"),
    ],
)
def test_spoken_form(language: str, text: str, said: str) -> None:
    assert spoken_form(text, language) == said


@given(st.text(max_size=60), st.sampled_from(["en", "es", "zh"]))
def test_no_text_breaks_it_and_words_stay(text: str, language: str) -> None:
    out = spoken_form(f"perro {text} gato", language)
    assert out.startswith("perro")
    assert out.endswith("gato")
    assert out == " ".join(out.split())
