import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from squtr.loaders.lru import LruCache


def size(text):
    return len(text)


def test_it_keeps_what_was_used_last():
    cache = LruCache(6, size)
    for key in ("aa", "bb", "cc"):
        cache.get(key, lambda key=key: key)
    cache.get("aa", lambda: pytest.fail("was kept"))
    cache.get("dd", lambda: "dd")
    assert len(cache) == 3
    cache.get("bb", lambda: "made")
    assert cache.get("bb", lambda: "other") == "made"
    # Larger than the whole cache: kept alone.
    assert cache.get("big", lambda: "x" * 10) == "x" * 10
    assert len(cache) == 1


def test_a_value_is_made_once_for_all_threads():
    cache, made, gate = LruCache(100, size), [], threading.Barrier(4)

    def make():
        made.append(1)
        return "value"

    def ask(_):
        gate.wait()
        return cache.get("key", make)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == ["value"] * 4
    assert len(made) == 1


def test_errors_keep_nothing():
    cache = LruCache(100, size)
    with pytest.raises(ZeroDivisionError):
        cache.get("bad", lambda: str(1 / 0))
    assert cache.get("bad", lambda: "good") == "good"


def test_a_pickled_cache_is_empty():
    cache = LruCache(100, size)
    cache.get("key", lambda: "value")
    copied = pickle.loads(pickle.dumps(cache))
    assert len(copied) == 0
    assert copied.get("key", lambda: "again") == "again"
