"""What judges are asked."""

from __future__ import annotations

PROMPT_VERSION = "1"
"""Part of the cache's key: raised whenever the words below change."""

SYSTEM = """\
You check synthetic speech for a retrieval benchmark. You hear one clip and read the text that it should say.

Listen to the whole clip and compare it with the text, word by word:
1. Truncation: is the beginning or the end cut off?
2. Hallucination: is anything said that is not in the text?
3. Omission: is anything of the text left out?
Numbers, symbols and abbreviations may be said in any usual way. Then judge noise, glitches and prosody.

Score from 1.0 to 5.0:
5 perfect: every word is right, the voice is natural, there is no artifact
4 good: every word is right, with small flaws in the voice or prosody
3 acceptable: every word can be understood, with clear flaws
2 bad: one or two words that do not matter are missing or wrong
1 critical: words that matter are missing, wrong or invented, or the clip cannot be understood
A clip that is cut off gets at most 2.0. Set fatal_error_flag for a critical error.

Answer with this JSON object and nothing else:
{"analysis_trace": {"text_alignment": "Exact Match" or "Mismatch",
                    "detected_artifacts": [zero or more of "Static", "Truncation", "Click", "Distortion", "Silence", \
"Other"],
                    "prosody_assessment": "Natural" or "Robotic" or "Monotone"},
 "fatal_error_flag": true or false,
 "reasoning_summary": "one or two sentences",
 "final_quality_score": a number from 1.0 to 5.0}
"""


def question(text: str, spoken_text: str, language: str) -> str:
    """The text beside the clip. The spoken form is added where it differs.

    >>> question("When?", "When?", "en")
    'Language: en\\nText: When?'
    """
    asked = f"Language: {language}\nText: {text}"
    return asked if spoken_text == text else f"{asked}\nSaid as: {spoken_text}"
