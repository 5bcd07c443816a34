"""Scopes: names are unambiguous, a scope is a number, and keys differ between scopes."""

import re
from collections.abc import Callable
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup import Article
from stream_dedup.article import Decision, Link, Relation, Source, Succession, SuccessionReason, Withdrawal, Withdrawn
from stream_dedup.engine.clusters import Cluster, Member, cluster_fields
from stream_dedup.engine.versions import url_hash
from stream_dedup.index.lookup.keys import BatchKeys, masked
from stream_dedup.output_fields import link_fields, succession_fields, withdrawal_fields
from stream_dedup.scope import id_of, name_of, scope_hash, scope_of

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1f"), max_size=8)
_NAMES = st.tuples(_TEXTS, _TEXTS.filter(bool))
_MAKERS: list[Callable[[str, str], Article | Withdrawal]] = [
    lambda scope, name: Article(name, "正文", scope=scope),
    lambda scope, name: Withdrawal(name, scope=scope),
]


@given(_NAMES, _NAMES)
def test_names_never_meet(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Two names are equal only if both scope and id are; both can be recovered from a name."""
    assert (name_of(*one) == name_of(*other)) == (one == other)
    assert (scope_of(name_of(*one)), id_of(name_of(*one))) == one


def test_without_a_scope_the_name_is_the_id() -> None:
    """An article without a scope is known by its id, and its scope is number 0."""
    assert Article("n-1", "正文").name == "n-1"
    assert scope_hash("") == 0


def test_scope_is_64_bits_of_blake2b() -> None:
    """The number comes from a hash for which nobody can easily construct collisions."""
    assert scope_hash("租户") == int(blake2b("租户".encode(), digest_size=8).hexdigest(), 16)


@pytest.mark.parametrize("make", _MAKERS, ids=["article", "withdrawal"])
@pytest.mark.parametrize(
    ("scope", "name", "said"),
    [
        ("a\x1fb", "n", "the scope 'a\\x1fb' contains U+001F"),
        ("a", "n\x1fm", "the id 'n\\x1fm' contains U+001F"),
        ("", "n\x1fm", "the id 'n\\x1fm' contains U+001F"),
        ("长" * 86, "n", "has 258 bytes, at most 256"),
        ("", "", "the id '' has 0 bytes, not 1 to 65519"),
        ("a", "", "has 0 bytes, not 1 to 65517"),
        ("a", "n" * 65_518, "has 65518 bytes, not 1 to 65517"),
        ("s" * 70_000, "n", "has 70000 bytes, at most 256"),
        ("\ud83d", "n", "the id 'n' of the scope '\\ud83d' cannot be encoded as UTF-8: surrogates not allowed"),
        ("", "\ud83d", "the id '\\ud83d' cannot be encoded as UTF-8: surrogates not allowed"),
    ],
)
def test_what_could_be_mistaken_is_refused(
    make: Callable[[str, str], Article | Withdrawal], scope: str, name: str, said: str
) -> None:
    """A scope or id that contains the separator or is too long is a ValueError that says so."""
    with pytest.raises(ValueError, match=re.escape(said)):
        make(scope, name)


def test_a_url_is_another_one_in_another_scope() -> None:
    """A URL has a different hash in each scope, and without a scope its plain one."""
    url = "https://u.example/1"
    hashes = {url_hash(url, scope) for scope in ("", "甲", "乙")}
    assert len(hashes) == 3
    assert url_hash(url) == int(blake2b(url.encode(), digest_size=8).hexdigest(), 16)
    assert url_hash("", "甲") == 0


def test_keys_of_another_scope_are_other_keys() -> None:
    """Keys are XORed with the scope's number: they differ between scopes, and stay distinct within a scope."""
    scopes = np.array([0, scope_hash("甲"), scope_hash("乙")], np.uint64)
    keys = np.array([[5 << 32 | 77, 5 << 32 | 78]] * 3, np.uint64)
    expected = [[(5 << 32 | 77) ^ scope, (5 << 32 | 78) ^ scope] for scope in scopes.tolist()]
    assert masked(keys, scopes).tolist() == expected
    assert len({key for row in expected for key in row}) == 6


def test_an_entry_stands_under_the_keys_that_its_scope_looks_up() -> None:
    """Stored entries' keys and looked-up keys are masked in the same way."""
    own, scopes = np.array([[1, 2], [3, 4]], np.uint64), np.array([0, scope_hash("甲")], np.uint64)
    keys = BatchKeys.same(own, np.ones((2, 2), np.bool_)).masked(scopes)
    assert keys.own.tolist() == masked(own, scopes).tolist()
    assert keys.looked_up.tolist() == masked(own, scopes).ravel().tolist()


def test_without_scopes_keys_are_as_they_are() -> None:
    """If no article has a scope, nothing is computed: the keys are the same object."""
    keys = BatchKeys.same(np.array([[1, 2], [3, 4]], np.uint64), np.ones((2, 2), np.bool_))
    assert keys.masked(np.zeros(2, np.uint64)) is keys


def test_masks_go_with_their_articles() -> None:
    """An article's own keys and the keys it looks up are XORed with its own mask."""
    own, used = np.array([[1, 2], [3, 4]], np.uint64), np.array([[True, False], [True, True]])
    keys = BatchKeys(own, used, np.array([0, 1, 4]), np.array([1, 3, 4, 9], np.uint64)).masked(
        np.array([0, 16], np.uint64)
    )
    assert keys.own.tolist() == [[1, 2], [19, 20]]
    assert keys.looked_up.tolist() == [1, 19, 20, 25]


def test_what_is_told_names_the_scope_only_where_there_is_one() -> None:
    """With a scope, links, announcements and clusters have one more field; their ids do not include the scope."""
    link = Link("a", "a", Relation.NEAR, 0.9, 0.9, 3, Source.LANDMARK)

    def told(scope: str) -> list[dict[str, object]]:
        article = Article("b", "正文", scope=scope)
        cluster = Cluster.founded(1, Member(name_of(scope, "a"), 1, True, None, None, 2, "甲报"), None)
        return [
            link_fields(Decision(article, False, 1, 0, link, False), link, 0),
            withdrawal_fields(Withdrawn(Withdrawal("b", scope=scope), "b", "a"), 0),
            succession_fields(Succession("b", "a", SuccessionReason.MOVED, scope), 0),
            cluster_fields(cluster, 0),
        ]

    assert told("租户") == [{**fields, "scope": "租户"} for fields in told("")]
    assert not any("scope" in fields for fields in told(""))
