"""Which questions are asked in which ways: written or spoken, in the item's own order of options and in others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import UsageError
from ....loaders.questions.question import Question
from ....loaders.keyed import keyed_rng
from ....loaders.records import Samples
from .answers.option_text import LETTERS
from ...protocols import AnswerRequest
from .prompts import audio_names, prompt_of

LANGUAGE = "es"
SPOKEN = "#spoken"
"""What is put behind an item's id for its spoken version."""
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """One way to ask a question: `order` says which option is shown in each place, None in the item's own order."""

    question: Question
    spoken: bool = False
    order: Order | None = None

    @property
    def id(self) -> str:
        """The item's id, that of its spoken version where it is spoken."""
        return f"{self.question.id}{SPOKEN}" if self.spoken else self.question.id

    @property
    def key(self) -> tuple[str, Order | None]:
        """What tells it apart from all others."""
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
        """The ids of the clips, in the order in which they are heard; the spoken question is the last."""
        return self.question.all_audios if self.spoken else self.question.audios

    @property
    def prompt(self) -> str:
        """What is written."""
        question = self.question
        return prompt_of(
            question.kind, question.question, self.shown, comparative=question.comparative, spoken=self.spoken
        )

    def request(self, clips: Sequence[Samples]) -> AnswerRequest:
        """With its clips, or without any."""
        question = self.question
        names = audio_names(question.kind, len(question.audios), spoken=self.spoken) if clips else ()
        return AnswerRequest(
            self.prompt,
            tuple(clips),
            names,
            # What is only said must not be read.
            question="" if self.spoken else question.question,
            options=self.shown,
            spoken_question=self.spoken,
            language=LANGUAGE,
        )


def asks_of(questions: Sequence[Question], *, permutations: int = 1, spoken: bool = True, seed: int = 0) -> list[Ask]:
    """Every way in which `questions` are asked: all orders of one, then its spoken version.

    `permutations` is in how many orders a multiple-choice question is asked, the item's own first; where there are
    fewer, in all. The others are drawn from the item's id and `seed`. A spoken version is asked in the own order.

    >>> one = Question("q", "mcqa", ("a",), "¿Cuál?", ("Uno", "Dos", "Tres"), "Uno", question_audio="p")
    >>> [(ask.id, ask.letters) for ask in asks_of([one], permutations=2)]
    [('q', ''), ('q', 'BCA'), ('q#spoken', '')]
    """
    if permutations < 1:
        raise UsageError(f"{permutations} orders of options cannot be asked.", hint="Give at least 1.")
    found: list[Ask] = []
    for question in questions:
        found += [Ask(question, order=order) for order in orders_of(question, permutations, seed)]
        if spoken and question.spoken:
            found.append(Ask(question, spoken=True))
    return found


def orders_of(question: Question, permutations: int, seed: int) -> list[Order | None]:
    """The orders in which a question's options are shown, all different, the own one (None) first."""
    size = len(question.options)
    found: list[Order | None] = [None]
    wanted = min(permutations, math.factorial(size)) if size else 1
    rng = keyed_rng(seed, "option order", question.id)
    seen = {tuple(range(size))}
    while len(found) < wanted:
        order = tuple(int(place) for place in rng.permutation(size))
        if order not in seen:
            seen.add(order)
            found.append(order)
    return found
