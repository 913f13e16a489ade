"""What is kept between evaluations: whole after kills, shared by processes, damage named."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import IntegrityError, StorageError
from squtr.harness.evaluation.store import Ranking, RankingKey, Store
from squtr.harness.protocols import Hit, Hypothesis, Reply, Rewritten, Transcript

KEY = RankingKey("retriever", "corpus", "en", 10)
TRANSCRIPT = Transcript("two words", loop=True, truncated=True, seconds=0.5, front_end_seconds=0.25, confidence=0.75)


def keep(store: Store, *names: str, transcript: Transcript = TRANSCRIPT) -> None:
    clips = {f"file-{name}": f"clip-{name}" for name in names}
    store.keep_transcripts(clips, dict.fromkeys(clips.values(), (transcript, 2.0)), language="en", model="asr")
    store.keep_rankings(KEY, {f"text-{name}": Ranking.of([Hit(f"d-{name}", 1.5)], 0.1) for name in names})


def held(store: Store, *names: str) -> int:
    """How many of these the store knows, the same of everything."""
    clips = store.clips([f"file-{name}" for name in names])
    transcripts = store.transcripts([f"clip-{name}" for name in names], language="en", model="asr")
    rankings = store.rankings(KEY, [f"text-{name}" for name in names])
    assert len(clips) == len(transcripts) == len(rankings)
    for name in names:
        if f"file-{name}" in clips:
            assert clips[f"file-{name}"] == f"clip-{name}"
            assert rankings[f"text-{name}"].hits == (Hit(f"d-{name}", 1.5),)
    return len(clips)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    best = (Hypothesis("two words", -0.5), Hypothesis("to birds \N{BIRD}\x00", -1.25))
    spoken = Transcript("two words", seconds=0.1, hypotheses=best)
    store = Store(tmp_path)
    keep(store, "a")
    keep(store, "b", transcript=spoken)
    again = Store(tmp_path)
    assert again.transcripts(["clip-a", "clip-b", "clip-c"], language="en", model="asr") == {
        "clip-a": TRANSCRIPT,
        "clip-b": spoken,
    }
    assert again.transcripts(["clip-a"], language="es", model="asr") == {}
    assert again.transcripts(["clip-a"], language="en", model="other") == {}
    assert held(again, "a", "b", "c") == 2
    for other in (RankingKey("x", "corpus", "en", 10), RankingKey("retriever", "corpus", "en", 11)):
        assert again.rankings(other, ["text-a"]) == {}
    assert again.speed("asr") == pytest.approx((0.75 + 0.1) / 4)
    assert again.speed("other") is None


def test_failed_transcripts_are_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keep(store, "a", transcript=Transcript("", error="too loud"))
    assert store.clips(["file-a"])
    assert store.transcripts(["clip-a"], language="en", model="asr") == {}


def test_the_first_word_holds(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path, rank=1)
    keep(store, "a")
    keep(store, "a", transcript=Transcript("other words"))
    keep(other, "a", transcript=Transcript("third words"))
    for reader in (store, other):
        assert reader.transcripts(["clip-a"], language="en", model="asr")["clip-a"] == TRANSCRIPT
    store.merge()
    assert Store(tmp_path).transcripts(["clip-a"], language="en", model="asr")["clip-a"] == TRANSCRIPT
    store.keep_indexing_s(KEY, 5.0)
    store.keep_indexing_s(KEY, 7.0)
    assert store.indexing_s(KEY) == 5.0
    assert store.indexing_s(RankingKey("other", "corpus", "en", 10)) is None


def test_replies_come_back_by_answerer_and_request(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path, rank=1)
    reply = Reply("B.", truncated=True, audio_truncated=True, seconds=0.5)
    store.keep_replies("chat", {"a": reply, "b": Reply("", error="timed out")})
    other.keep_replies("chat", {"c": Reply("C.", seconds=0.1)})
    store.merge()
    again = Store(tmp_path)
    assert again.replies("chat", ["a", "b", "c", "d"]) == {"a": reply, "c": Reply("C.", seconds=0.1)}
    assert again.replies("other", ["a"]) == {}


def test_rewritten_texts_come_back_by_rewriter_language_and_transcripts(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path, rank=1)
    rewritten = Rewritten("two birds", seconds=0.5)
    store.keep_rewrites("llm", "en", {"a": rewritten, "b": Rewritten("", error="it gave an empty text")})
    other.keep_rewrites("llm", "en", {"c": Rewritten("three", seconds=1.0)})
    store.merge()
    again = Store(tmp_path)
    assert again.rewrites("llm", "en", ["a", "b", "c"]) == {"a": rewritten, "c": Rewritten("three", seconds=1.0)}
    assert again.rewrites("other", "en", ["a"]) == again.rewrites("llm", "zh", ["a"]) == {}
    assert again.rewriting_s("llm") == pytest.approx(0.75)
    assert again.rewriting_s("other") is None


def test_transcripts_of_the_layout_without_confidence_are_made_again(tmp_path: Path) -> None:
    Store(tmp_path)
    with sqlite3.connect(tmp_path / "evaluations.sqlite") as connection:
        connection.execute("DROP TABLE transcripts_2")
        connection.execute("CREATE TABLE transcripts (audio, language, model, text)")
        connection.execute("INSERT INTO transcripts VALUES ('clip-a', 'en', 'asr', 'old')")
    store = Store(tmp_path)
    assert store.transcripts(["clip-a"], language="en", model="asr") == {}
    keep(store, "a")
    assert held(store, "a") == 1


def test_many_are_looked_up_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    names = [str(i) for i in range(1_203)]
    keep(store, *names)
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: opened.append(a) or connect(*a, **k))
    assert held(store, *names, "unknown") == len(names)
    assert len(opened) == 3


# Processes


def test_other_processes_write_beside_and_are_taken_in(tmp_path: Path) -> None:
    main, other = Store(tmp_path), Store(tmp_path, rank=1)
    keep(main, "a")
    keep(other, "b")
    assert held(other, "a", "b") == 2
    assert held(main, "a", "b") == 1
    main.merge([other.own])
    assert held(main, "a", "b") == 2
    # What was taken in need not be read again; what comes later is.
    other.clear()
    main.clear()
    keep(other, "c")
    assert held(other, "a", "b", "c") == 3
    main.merge()
    assert held(main, "a", "b", "c") == 3
    # This process lives, so its file stays until it closes it.
    assert len(list(tmp_path.glob("*.sqlite"))) == 2
    other.close()
    main.close()
    assert [p.name for p in tmp_path.iterdir()] == ["evaluations.sqlite"]


def killed_writer(folder: Path, code: str) -> None:
    """A process of rank 1 that runs `code` with `store` and is killed by it."""
    program = (
        "import os, signal, sqlite3, sys; from pathlib import Path\n"
        "from squtr.harness.evaluation.store import *; from squtr.harness.protocols import *\n"
        "store = Store(Path(sys.argv[1]), rank=1)\n"
        f"{code}\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


KEEP = "store.keep_transcripts({'file-k': 'clip-k'}, {'clip-k': (Transcript('x'), 1.0)}, language='en', model='asr')\n"
KEEP_RANKING = (
    "store.keep_rankings(RankingKey('retriever', 'corpus', 'en', 10), {'text-k': Ranking.of([Hit('d-k', 1.5)], 0.1)})"
)
HALF = """
with sqlite3.connect(store.own) as connection:
    connection.execute("PRAGMA cache_size = 1")
    rows = [(f"file-{i}", "never to be seen " * 50) for i in range(2000)]
    connection.executemany("INSERT INTO clips VALUES (?, ?)", rows)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_taken_in_and_removed(tmp_path: Path) -> None:
    killed_writer(tmp_path, KEEP + KEEP_RANKING)
    assert len(list(tmp_path.glob("*.sqlite"))) == 1
    main = Store(tmp_path)
    assert held(main, "k") == 0
    main.merge()
    assert held(main, "k") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["evaluations.sqlite"]


def test_a_process_killed_while_it_wrote_left_whole_transactions_only(tmp_path: Path) -> None:
    killed_writer(tmp_path, KEEP + KEEP_RANKING + HALF)
    assert list(tmp_path.glob("*-journal")), "it was to be killed in the middle"
    main = Store(tmp_path)
    main.merge()
    assert held(main, "k") == 1
    assert not main.clips([f"file-{i}" for i in range(2000)])
    assert [p.name for p in tmp_path.iterdir()] == ["evaluations.sqlite"]


def gone() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_process_killed_before_it_wrote_anything_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / f"evaluations.{socket.gethostname()}.2.{gone()}.sqlite").touch()
    main = Store(tmp_path)
    main.merge()
    assert [p.name for p in tmp_path.iterdir()] == ["evaluations.sqlite"]


@pytest.mark.parametrize("host", ["elsewhere", "node7.cluster.example"])
def test_a_process_on_another_machine_may_live(tmp_path: Path, host: str) -> None:
    keep(Store(tmp_path / "there", rank=1), "f")
    (written,) = (tmp_path / "there").glob("evaluations.*.1.*.sqlite")
    foreign = tmp_path / f"evaluations.{host}.1.{gone()}.sqlite"
    foreign.write_bytes(written.read_bytes())
    main = Store(tmp_path)
    main.merge()
    main.merge()
    assert held(main, "f") == 1
    assert foreign.exists()


def test_two_evaluations_share_a_folder(tmp_path: Path) -> None:
    names = [[f"{writer}-{i}" for i in range(12)] for writer in range(4)]
    errors: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            store = Store(tmp_path, rank=writer % 2)
            for name in names[writer]:
                keep(store, name)
                if writer % 2 == 0:
                    store.merge()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    main = Store(tmp_path)
    main.merge()
    assert held(main, *(name for some in names for name in some)) == 48


# Damage


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "evaluations.sqlite").write_bytes(b"not a database " * 1000)
    with pytest.raises(StorageError, match=r"evaluations\.sqlite cannot be used: file is not a database\. .*remove it"):
        Store(tmp_path)


def test_a_file_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keep(store, *(str(i) for i in range(500)))
    content = bytearray(store.path.read_bytes())
    for at in range(4096, len(content), 4096):
        content[at : at + 2000] = os.urandom(2000)
    store.path.write_bytes(content)
    with pytest.raises(StorageError, match=r"evaluations\.sqlite cannot be used: .*malformed"):
        held(Store(tmp_path), *(str(i) for i in range(500)))


def test_a_damaged_file_of_another_process_is_named_not_the_main_one(tmp_path: Path) -> None:
    main = Store(tmp_path)
    keep(main, "a")
    wrong = tmp_path / f"evaluations.{socket.gethostname()}.1.{gone()}.sqlite"
    wrong.write_bytes(b"torn " * 4000)
    with pytest.raises(StorageError, match=wrong.name):
        main.merge()
    wrong.unlink()
    main.merge()
    assert held(main, "a") == 1


def test_a_damaged_transcript_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keep(store, "a")
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE transcripts_2 SET hypotheses = '[[1'")
    with pytest.raises(IntegrityError, match="Remove the file"):
        store.transcripts(["clip-a"], language="en", model="asr")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot be used"):
        Store(tmp_path / "below")


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file cannot be used: File exists"):
        Store(tmp_path / "file")


# Rankings


@given(
    st.lists(st.tuples(st.text(st.characters(exclude_categories=[]), max_size=20), st.floats(allow_nan=False))),
    st.floats(0, 1e6),
)
def test_rankings_are_held_exactly(hits: list[tuple[str, float]], seconds: float) -> None:
    ranking = Ranking.of([Hit(id_, score) for id_, score in hits], seconds)
    assert [(hit.document_id, hit.score) for hit in ranking.hits] == hits
    assert ranking.seconds == seconds
    assert Ranking.of(ranking.hits, 1.0).content == ranking.content


def test_rankings_take_little_memory() -> None:
    ranking = Ranking.of([Hit(f"doc-{i * 37}", 20 / (i + 1)) for i in range(100)], 0.0)
    assert len(ranking.packed) < 1500


@pytest.mark.parametrize("content", [b"", b"junk", b"x\x9c", Ranking.of([Hit("a", 1.0)], 0.0).packed[:-3]])
def test_a_damaged_ranking_is_an_error(content: bytes) -> None:
    with pytest.raises(IntegrityError, match="a stored ranking cannot be read"):
        _ = Ranking(content, 0.0).hits
