"""Retries at the Hub: waiting, what an error means, and what of it may be shown."""

from __future__ import annotations

import httpx2
import pytest
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import HubError
from squtr.loaders.hub.calls import diagnose, redact, with_retries
from squtr.loaders.retries import PASSING, Backoff

TOKEN = "hf_secretsecretsecret"


def answered(status: int, **headers: str) -> HfHubHTTPError:
    request = httpx2.Request("POST", "http://hub/api", headers={"authorization": f"Bearer {TOKEN}"})
    response = httpx2.Response(status, request=request, headers=headers)
    return HfHubHTTPError(f"{status} for Bearer {TOKEN}", response=response, server_message=f"no: {TOKEN}")


def wrapped(error: Exception) -> Exception:
    """As the client's upload threads raise it."""
    try:
        raise RuntimeError("Error while uploading 'x'") from error
    except RuntimeError as outer:
        return outer


@given(attempt=st.integers(0, 40), jitter=st.floats(0, 1, exclude_max=True), asked=st.floats(0, 1e6))
def test_waiting(attempt: int, jitter: float, asked: float) -> None:
    backoff = Backoff(jitter=lambda: jitter)
    wait_s = backoff.wait_s(attempt, asked)
    assert min(60.0, 2.0**attempt) / 2 <= wait_s <= max(60.0, min(asked, 600.0))
    assert wait_s >= min(asked, 600.0)
    assert backoff.wait_s(attempt) <= min(60.0, 2.0**attempt)


@pytest.mark.parametrize("status", [*sorted(PASSING), 400, 401, 402, 403, 404, 413, 422, 501])
@pytest.mark.parametrize("wrap", [False, True])
def test_answers(status: int, wrap: bool) -> None:
    error: Exception = answered(status, **{"Retry-After": "12"})
    trouble = diagnose(wrapped(error) if wrap else error, TOKEN)
    assert trouble is not None
    assert (trouble.status, trouble.asked_s) == (status, 12.0)
    assert trouble.passing == (status in {408, 409, 412, 425, 429, 500, 502, 503, 504})
    assert trouble.message == "no: ***"


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (httpx2.ConnectError("refused"), True),
        (httpx2.ReadTimeout("late"), True),
        (httpx2.RemoteProtocolError("cut"), True),
        (wrapped(httpx2.WriteError("cut")), True),
        (ConnectionResetError("reset"), True),
        (RuntimeError("hf_xet: no route"), True),
        (OfflineModeIsEnabled("offline"), False),
        (ValueError("LFS batch API returned errors: no space"), False),
    ],
)
def test_no_answer(error: Exception, passing: bool) -> None:
    trouble = diagnose(error)
    assert trouble is not None
    assert (trouble.status, trouble.passing) == (0, passing)


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyError("x"), RuntimeError("x"), HubError("x"), FileNotFoundError("x")]
)
def test_our_own_mistakes_are_not_the_hubs(error: Exception) -> None:
    assert diagnose(error) is None
    calls = []

    def fail() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        with_retries(fail, doing="x", backoff=Backoff(sleep=lambda _: None))
    assert calls == [1]


def test_retries_end() -> None:
    slept: list[float] = []

    def fail() -> None:
        raise answered(503)

    with pytest.raises(HubError, match=r"pushing failed 4 times: the Hub answered 503 \(no: \*\*\*\)\.") as ended:
        with_retries(
            fail, doing="pushing", token=TOKEN, backoff=Backoff(attempts=4, sleep=slept.append, jitter=lambda: 0.0)
        )
    assert slept == [0.5, 1.0, 2.0]
    assert ended.value.__cause__ is ended.value.__context__ is None


@given(st.text(), st.text(alphabet="abcdefXYZ0189", min_size=20, max_size=40), st.text())
def test_redacting(before: str, secret: str, after: str) -> None:
    assert secret not in redact(f"{before}{secret}{after}", secret)
    assert f"hf_{secret}" not in redact(f"{before} hf_{secret} {after}")
    assert "\n" not in redact(before)
