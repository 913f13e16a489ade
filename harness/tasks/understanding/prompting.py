"""The prompts of every question: written or spoken, with its options in their own order and in others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import UsageError
from ....loaders.keyed import keyed_rng
from ....loaders.questions.question import Question
from ....loaders.records import Samples
from ...protocols import AnswerRequest
from .answers.option_text import LETTERS
from .prompts import audio_names, prompt_of

SPOKEN = "#spoken"
"""What is put behind an item's id for its spoken version."""
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt for a question: `order` says which option is shown in each place, None in the item's own order."""

    question: Question
    language: str
    spoken: bool = False
    order: Order | None = None

    @property
    def id(self) -> str:
        return f"{self.question.id}{SPOKEN}" if self.spoken else self.question.id

    @property
    def key(self) -> tuple[str, Order | None]:
        return self.id, self.order

    @property
    def shown(self) -> tuple[str, ...]:
        """The options as shown, () for an instruction."""
        options = self.question.options
        return options if self.order is None else tuple(options[place] for place in self.order)

    @property
    def letters(self) -> str:
        """The order as letters of the item's own options: "CAB" shows the third as A; "" for the own order."""
        return "" if self.order is None else "".join(LETTERS[place] for place in self.order)

    @property
    def audios(self) -> tuple[str, ...]:
        return self.question.all_audios if self.spoken else self.question.audios

    def request(self, clips: Sequence[Samples]) -> AnswerRequest:
        question = self.question
        names = audio_names(question.kind, len(question.audios), spoken=self.spoken) if clips else ()
        return AnswerRequest(
            prompt_of(
                question.kind, question.question, self.shown, comparative=question.comparative, spoken=self.spoken
            ),
            tuple(clips),
            names,
            # The text of a spoken question must not be in the prompt.
            question="" if self.spoken else question.question,
            options=self.shown,
            spoken_question=self.spoken,
            language=self.language,
        )


def prompts_of(
    questions: Sequence[Question], language: str, *, orders: int = 1, spoken: bool = True, seed: int = 0
) -> list[Prompt]:
    """The prompts of `questions`: all orders of one, then its spoken version.

    `orders` is in how many orders of its options a multiple-choice question is asked, the item's own first; where there
    are fewer, in all. The others are drawn from the item's id and `seed`. A spoken version keeps the own order.

    >>> one = Question("q", "mcqa", ("a",), "¿Cuál?", ("Uno", "Dos", "Tres"), "Uno", question_audio="p")
    >>> [(one.id, one.letters) for one in prompts_of([one], "es", orders=2)]
    [('q', ''), ('q', 'BCA'), ('q#spoken', '')]
    """
    if orders < 1:
        raise UsageError(f"{orders} orders of options cannot be asked.", hint="Give at least 1.")
    found: list[Prompt] = []
    for question in questions:
        found += [Prompt(question, language, order=order) for order in orders_of(question, orders, seed)]
        if spoken and question.spoken:
            found.append(Prompt(question, language, spoken=True))
    return found


def orders_of(question: Question, most: int, seed: int) -> list[Order | None]:
    """The orders in which a question's options are shown, all different, the own one (None) first."""
    size = len(question.options)
    found: list[Order | None] = [None]
    wanted = min(most, math.factorial(size)) if size else 1
    rng = keyed_rng(seed, "option order", question.id)
    seen = {tuple(range(size))}
    while len(found) < wanted:
        order = tuple(int(place) for place in rng.permutation(size))
        if order not in seen:
            seen.add(order)
            found.append(order)
    return found
