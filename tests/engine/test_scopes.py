"""Scopes in the engine: they never mix, whatever keys they share, and cost nothing if they are not used.

Knows outcomes and stored keys; the random walks over two scopes are in the other files of this folder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from deploy.demo.samples import sample_stream
from stream_dedup import Article, Deduplicator, Relation
from stream_dedup.article import Unjudged, Withdrawal, Withdrawn
from stream_dedup.decode import Decoder
from stream_dedup.index.lookup.candidates import SIMHASH
from stream_dedup.index.lookup.keys import BatchKeys
from stream_dedup.index.stores.store import Family, MemoryStore
from stream_dedup.output_fields import link_fields
from stream_dedup.settings import InputSettings
from tests.engine.durable import contents, shown_lists
from tests.engine.model import BASES, BEGIN, CUTS, VARIANTS, Item, article, engine_settings, parts, seen, streams
from tests.engine.samples import LIGHT, bodies
from tests.engine.scoped import SCOPES, Scopes
from tests.engine.sound import faults

_TABLES_ALONE = LIGHT.model_validate({**LIGHT.model_dump(), "landmarks": {"enabled": False}})
_NOW = 1_792_400_000_000  # later than the sample stream
_SIZES = pytest.mark.parametrize("size", [1, 2, 99], ids=["one by one", "two by two", "at once"])


def _cut(stream: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(stream), size):
        yield stream[start : start + size]


@_SIZES
def test_each_scope_has_its_own_story(size: int) -> None:
    """A text is unique in each scope, and its copies are found within their own, even with the same ids and URLs."""
    scopes = ["", "甲", "乙"]
    stories = [Article("story", bodies()[0], url="https://u.example/1", scope=scope) for scope in scopes]
    copies = [Article("copy", f"本报讯 {bodies()[0]}", scope=scope) for scope in scopes]
    again = [replace(one, body=bodies()[1]) for one in stories]
    with Deduplicator(settings=LIGHT) as engine:
        stream = _cut([*stories, *copies, *stories, *again], size)
        found = [one for batch in stream for one in engine.process(batch).decisions]
        keys = sorted(key[4:].decode() for key, _ in engine.state.store.items(Family.ARTICLES))
    assert [one.link and (one.link.relation, one.link.duplicate_of, one.link.matched) for one in found] == [
        *[None] * 3,
        *[(Relation.NEAR, "story", "story")] * 3,
        *[(Relation.REDELIVERY, "story", "story")] * 3,
        *[(Relation.REVISION, "story", "story")] * 3,
    ]
    assert keys == sorted(["story", "copy", *(f"{scope}\x1f{name}" for scope in "甲乙" for name in ("story", "copy"))])


@_SIZES
def test_withdrawals_stay_in_their_scope(size: int) -> None:
    """An article is withdrawn from its own scope only, by id or by URL; in other scopes it is unknown."""
    url = "https://u.example/1"
    stream: list[Item] = [
        *(Article("a", bodies()[0], url=url, scope=scope) for scope in SCOPES),
        Withdrawal("a", scope="another"),
        Withdrawal("unknown", url, scope="another"),
        Withdrawal("a", scope="租户"),
        Withdrawal("a", scope="租户"),
        Article("b", bodies()[0], scope="租户"),
        Article("b", bodies()[0]),
        Withdrawal("unknown", url),
    ]
    with Deduplicator(settings=LIGHT) as engine:
        found = [one for batch in _cut(stream, size) for one in engine.process(batch).outcomes]
    told = [
        (one.id, one.canonical)
        if isinstance(one, Withdrawn)
        else one.detail
        if isinstance(one, Unjudged)
        else one.link and one.link.duplicate_of
        for one in found
    ]
    assert told == [
        *(None, None),
        "no article 'a' of the scope 'another' is known in the window",
        "no article 'unknown' of the scope 'another' is known in the window",
        ("a", None),
        "no article 'a' of the scope '租户' is known in the window",
        *(None, "a"),
        ("a", "b"),
    ]


@pytest.fixture(scope="class")
def shared_keys() -> Iterator[None]:
    """Give all scopes the same keys, as if the keys did not include the scope's number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchKeys, "masked", lambda keys, _: keys)
        patch.setattr("stream_dedup.index.lookup.multi.masked", lambda own, _: own)
        yield


@pytest.mark.usefixtures("shared_keys")
class TestSharedKeys:
    """What holds even if no key tells two scopes apart: their entries do."""

    @_SIZES
    def test_scopes_that_share_lists_do_not_mix(self, size: int) -> None:
        """Two scopes with the same keys in all tables, here the only way to find copies, share lists but no link."""
        stream: list[Item] = []
        for number, body in enumerate(bodies()[:10]):
            stream += [Article(f"{number}", body, scope="甲"), Article(f"{number}-1", body, scope="乙")]
            stream += [Article(f"{number}-2", f"转载：{body}", scope=scope) for scope in ("甲", "乙")]
        with Deduplicator(settings=_TABLES_ALONE) as engine:
            found = [one for batch in _cut(stream, size) for one in engine.process(batch).decisions]
            lists = [postings for (place, _), postings in shown_lists(engine).items() if place == SIMHASH]
        # Each text has an entry in either scope.
        assert lists
        assert {len(postings) % 2 for postings in lists} == {0}
        links = [decision.link and decision.link.duplicate_of for decision in found]
        assert links == [link for number in range(10) for link in (None, None, f"{number}", f"{number}-1")]

    @given(stream=streams(scopes=SCOPES), cuts=CUTS)
    @hypothesis_settings(
        max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    def test_outcomes_hold_where_all_keys_are_shared(self, stream: list[Item], cuts: set[int]) -> None:
        """Even if all kinds of keys were the same in two scopes, each outcome would be that of the model."""
        settings = engine_settings(2)
        model = Scopes(settings)
        with Deduplicator(settings=settings) as engine:
            found = [seen(outcome) for part in parts(stream, cuts) for outcome in engine.process(part).outcomes]
        assert found == [model.feed(item) for item in stream]


def test_copies_of_a_scope_are_found_after_a_restart() -> None:
    """Posting lists are rebuilt from entries, under the keys of their scopes."""
    store = MemoryStore()
    originals = [Article(f"o{n}", body, scope=f"s{n % 3}") for n, body in enumerate(bodies()[:20])]
    Deduplicator(settings=_TABLES_ALONE, store=store).add_batch(originals)
    engine = Deduplicator(settings=_TABLES_ALONE, store=store)
    for n, body in enumerate(bodies()[:20]):
        for scope in ("s0", "s1", "s2"):
            link = engine.decide([Article("c", f"本报讯{body}", scope=scope)]).decisions[0].link
            assert (link and link.duplicate_of) == (f"o{n}" if scope == f"s{n % 3}" else None)


def test_state_with_scopes_is_in_order() -> None:
    """Each entry is listed under the keys of its scope, and under no others."""
    stream = [
        article(str(n), n % BASES, n % VARIANTS, at=BEGIN + n, scope=("", "甲", "乙")[n // 7 % 3]) for n in range(90)
    ]
    with Deduplicator(settings=LIGHT) as engine:
        engine.add_batch(stream)
        assert faults(engine, LIGHT) == []


def test_unused_scopes_cost_nothing() -> None:
    """If no message names a scope, states and links are byte for byte those of a decoder that looks for none."""
    messages = [sample.value for sample in sample_stream(20) if sample.dead_reason is None]
    looking = InputSettings.model_validate({"scope_header": "tenant", "fields": {"scope": "meta.tenant"}})
    states, links = [], []
    for decoder in (Decoder(InputSettings()), Decoder(looking)):
        with Deduplicator(settings=LIGHT) as engine:
            judged = engine.process([decoder.decode(message, _NOW, headers=[("other", b"1")]) for message in messages])
            states.append(contents(engine))
            links.append([link_fields(one, one.link, _NOW) for one in judged.decisions if one.link])
    assert states[0] == states[1]
    assert links[0] == links[1]
    assert len(links[0]) > 100
    assert not any("scope" in link for link in links[0])
