"""Revisions and clusters through the engine: who is canonical, who moves, and what readers are told.

Knows links, announcements and clusters; random streams are in test_random_walk.
"""

from dataclasses import replace
from typing import Any

import pytest

from stream_dedup import Article, Deduplicator, Relation
from stream_dedup.article import Succession, SuccessionReason, Withdrawal
from tests.engine.model import BEGIN, DAY, HOUR, Item, article, cluster_seen, engine_settings, measures, text
from tests.engine.samples import LIGHT, bodies

_URL = "https://u.example/1"
_SIZES = pytest.mark.parametrize("size", [1, 2, 9])


def _told(
    stream: list[Item],
    size: int,
    **cluster: Any,  # noqa: ANN401  # settings of any type
) -> tuple[list[str], list[Succession], dict[str, Any]]:
    """Return what each link says, what is announced, and the final report on each cluster."""
    links: list[str] = []
    successions: list[Succession] = []
    clusters: dict[str, Any] = {}
    with Deduplicator(settings=engine_settings(2, **cluster)) as engine:
        for at in range(0, len(stream), size):
            judged = engine.process(stream[at : at + size])
            links += [f"{one.link.relation} of {one.link.duplicate_of}" if one.link else "" for one in judged.decisions]
            successions += [one for made in judged.successions.values() for one in made]
            clusters |= judged.clusters
    return links, successions, {name: one and cluster_seen(one) for name, one in clusters.items()}


# ---------------------------------------------------------------------------------------------------- policies


@_SIZES
@pytest.mark.parametrize(
    ("policy", "canonical"),
    [
        ({"canonical": "first_seen"}, ["a", "a", "a"]),
        ({"canonical": "first_published"}, ["a", "b", "b"]),
        ({"canonical": "longest"}, ["a", "a", "c"]),
        ({"canonical": "preferred_source", "preferred_sources": ["乙报"]}, ["a", "b", "b"]),
    ],
)
def test_links_name_the_canonical_article_of_their_moment(
    policy: dict[str, Any], canonical: list[str], size: int
) -> None:
    """An article that the policy prefers takes over on arrival: earlier links name the old one, later links the new."""
    stream: list[Item] = [
        article("a", at=BEGIN + 5 * HOUR),
        article("b", variant=2, at=BEGIN + 6 * HOUR, lag=3 * HOUR, source="乙报"),
        article("c", variant=1, at=BEGIN + 7 * HOUR),
        article("d", variant=2, at=BEGIN + 8 * HOUR),
    ]
    assert len(stream[2].body) > len(stream[0].body)  # type: ignore[union-attr]  # all are articles
    links, successions, clusters = _told(stream, size, **policy)
    relations = ["near", "exact", "near"]
    assert links == ["", *(f"{relation} of {name}" for relation, name in zip(relations, canonical, strict=True))]
    last = canonical[2]
    assert successions == ([Succession("a", last, SuccessionReason.POLICY)] if last != "a" else [])
    expected = (last, 3, BEGIN + 5 * HOUR, BEGIN + 8 * HOUR, {"": 3, "乙报": 1})
    assert clusters[last] == expected
    assert [name for name, one in clusters.items() if one is not None] == [last]


def test_succession_stands_behind_the_article_that_led_to_it() -> None:
    """Also if others of the batch are not judged, since they came too late, or are withdrawals."""
    stream: list[Item] = [
        article("now", 1),
        Withdrawal("nobody"),
        article("late", 1, lag=3 * DAY),
        article("short", variant=5),
        article("late too", 1, lag=3 * DAY),
        article("long"),
        article("other", 2),
    ]
    with Deduplicator(settings=engine_settings(2, "dead", canonical="longest")) as engine:
        judged = engine.process(stream)
    assert judged.successions == {5: [Succession("short", "long", SuccessionReason.POLICY)]}


# --------------------------------------------------------------------------------------------------- revisions


@_SIZES
def test_another_text_of_an_id_is_a_revision(size: int) -> None:
    """It is unique and can be found, and so can the text before it: both lead to the same article."""
    stream: list[Item] = [article("a"), article("a", 1), article("b"), article("c", 1), article("a"), article("a", 1)]
    links, _, clusters = _told(stream, size)
    assert links == ["", "revision of a", "exact of a", "exact of a", "redelivery of a", "redelivery of a"]
    assert clusters["a"][:2] == ("a", 2)


@_SIZES
@pytest.mark.parametrize("variant", [2, 3, 5])
def test_changed_text_under_the_same_url_is_a_revision_under_any_id(variant: int, size: int) -> None:
    """An article of the same page is not a copy, however near; the same text there is one."""
    stream: list[Item] = [
        article("a", url=_URL),
        article("b", variant=variant, url=_URL),
        article("c", variant=variant, url=_URL),
        article("d", 1, url=_URL),
        article("e", 1, url=_URL),
    ]
    links, _, _ = _told(stream, size)
    assert links == ["", "revision of a", "exact of b", "revision of c", "exact of d"]


@pytest.mark.parametrize("size", [1, 4, 8, 9, 20])
@pytest.mark.parametrize(("between", "link"), [(7, "revision of f6"), (8, "near of a")])
def test_the_eight_newest_ids_of_a_url_are_known(between: int, link: str, size: int) -> None:
    """A text like that of the eighth id before it revises what is there; like that of the ninth, it is a copy."""
    others = [article(f"f{n}", 1 + n % 2, (0, 2, 3, 5)[n // 2], url=_URL) for n in range(between)]
    links, _, _ = _told([article("a", url=_URL), *others, article("last", variant=2, url=_URL)], size)
    assert links == ["", "revision of a", *(f"revision of f{n}" for n in range(between - 1)), link]


@pytest.mark.parametrize("size", [1, 4, 8, 9, 20])
@pytest.mark.parametrize(
    ("between", "cut", "link"),
    [(7, 9, "revision of f6"), (8, 9, "near of a"), (7, 0, "exact of a"), (8, 0, "exact of a")],
)
def test_the_eight_newest_ids_of_a_url_are_known_whatever_their_texts(
    between: int, cut: int, link: str, size: int
) -> None:
    """If none is like another, a batch is one run: those that it brings count together with those known before it.

    The very text of one of them is a copy of it.
    """
    first, *others = bodies()[: between + 1]
    stream: list[Item] = [Article("a", first, url=_URL)]
    stream += [Article(f"f{n}", body, url=_URL) for n, body in enumerate(others)]
    links, _, _ = _told([*stream, Article("last", first[: len(first) - cut], url=_URL)], size)
    assert links[-1] == link


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        # A new id revises the known one of its URL, whatever becomes of that behind it.
        ([article("x", variant=2, url=_URL), article("a", 1, url=_URL)], ["revision of a", "revision of a"]),
        ([article("x", variant=2, url=_URL), article("a", 1)], ["revision of a", "revision of a"]),
        # The known id has left the URL: what comes under it is new.
        (
            [article("a", 1, url="https://u.example/2"), Article("x", bodies()[20], url=_URL)],
            ["revision of a", ""],
        ),
        # The known id would be forgotten, had it not got a copy.
        (
            [article("b", variant=1, at=BEGIN + 20 * HOUR), article("a", at=BEGIN + 49 * HOUR)],
            ["exact of a", "redelivery of a"],
        ),
    ],
)
def test_what_happens_to_a_known_article_in_a_batch_counts_behind_it(
    items: list[Item], expected: list[str], size: int
) -> None:
    """Judged together or one by one: the second of two sees what the first has changed, and the first does not."""
    links, _, _ = _told([article("a", url=_URL), Article("other", bodies()[21]), *items], size)
    assert links[2:] == expected


@_SIZES
def test_revision_that_is_a_duplicate_belongs_to_the_article_of_its_page(size: int) -> None:
    """So does a copy of its text: links never name an article that is a duplicate itself."""
    stream: list[Item] = [
        article("a", url=_URL),
        article("b", variant=1),
        article("c", 1, url=_URL),
        article("d", 1, 1),
    ]
    links, _, clusters = _told(stream, size, revisions=True)
    assert links == ["", "exact of a", "revision of a", "exact of a"]
    assert clusters["a"][:2] == ("a", 3)
    assert _told(stream, size)[0] == ["", "exact of a", "revision of a", "exact of c"]


@_SIZES
def test_copy_with_a_new_text_that_is_a_duplicate_stays_where_it_is(size: int) -> None:
    """Its id was never published as unique: a copy of the new text cannot be linked to it."""
    stream: list[Item] = [article("a"), article("b", variant=1), article("b", 1), article("c", 1, 1)]
    links, _, clusters = _told(stream, size, revisions=True)
    assert links == ["", "exact of a", "revision of a", "exact of a"]
    assert clusters == {"a": ("a", 2, BEGIN, BEGIN, {"": 3})}
    assert _told(stream, size)[0] == ["", "exact of a", "revision of b", "exact of b"]


@_SIZES
def test_revision_is_compared_with_the_text_before_it_alone(size: int) -> None:
    """If that is not kept, as that of a copy is not, an older text of the article does not take its place."""
    stream = [article("a"), article("b", variant=3), article("b", variant=1), article("b", 1)]
    with Deduplicator(settings=engine_settings(2)) as engine:
        links = [one.link for at in range(0, 4, size) for one in engine.add_batch(stream[at : at + size])]
        assert engine.add(article("c", variant=3)).link is not None  # the older text is kept
    assert [one and (one.relation, one.jaccard) for one in links[2:]] == [("exact", 1.0), ("revision", None)]


@_SIZES
def test_revision_is_compared_with_its_own_text_rather_than_the_newest_of_its_page(size: int) -> None:
    """An id that was seen before stays the same article, whatever else came under its URL since."""
    stream = [article("a", url=_URL), article("b", 1, url=_URL), article("a", variant=2, url=_URL)]
    with Deduplicator(settings=engine_settings(2)) as engine:
        link = [one.link for at in range(0, 3, size) for one in engine.add_batch(stream[at : at + size])][-1]
    assert link is not None
    assert (link.relation, link.duplicate_of) == (Relation.REVISION, "a")
    assert link.jaccard == pytest.approx(measures(text(0, 0), text(0, 2))[1], abs=0.1)


@_SIZES
def test_urls_may_be_left_out_of_account(size: int) -> None:
    """With verify.same_url off, an article of the same page is judged like any other."""
    settings = LIGHT.model_validate({**LIGHT.model_dump(), "verify": {"same_url": False}})
    stream = [article("a", url=_URL), article("b", variant=2, url=_URL)]
    with Deduplicator(settings=settings) as engine:
        decisions = [one for at in range(0, 2, size) for one in engine.add_batch(stream[at : at + size])]
    assert [one.link and one.link.relation for one in decisions] == [None, Relation.NEAR]


@_SIZES
def test_copy_of_a_revision_is_judged_like_any_text(size: int) -> None:
    """The revised text again, under the same URL, may match the text before it too, whatever counts as a duplicate."""
    settings = LIGHT.model_validate({**LIGHT.model_dump(), "verify": {"duplicates": ["near"]}})
    stream = [article("a", url=_URL), article("b", variant=2, url=_URL), article("c", variant=2, url=_URL)]
    with Deduplicator(settings=settings) as engine:
        decisions = [one for at in range(0, 3, size) for one in engine.add_batch(stream[at : at + size])]
    links = [one.link and (one.link.relation, one.link.matched) for one in decisions]
    assert links == [None, (Relation.REVISION, "a"), (Relation.NEAR, "a")]


@_SIZES
def test_revised_text_that_has_drifted_from_copies_has_copies_of_its_own(size: int) -> None:
    """It is no link of a chain, of which each but the first would have to be close."""
    stream: list[Item] = [
        article("a"),
        article("b", at=BEGIN + DAY),
        article("a", variant=3, at=BEGIN + DAY),
        replace(article("c", at=BEGIN + DAY), body=text(1, 0)[:54] + text(0, 3)[54:]),
    ]
    assert _told(stream, size)[0] == ["", "exact of a", "revision of a", "near of a"]


@_SIZES
def test_articles_of_two_pages_do_not_hide_each_other(size: int) -> None:
    """Two articles that revise one page in the same batch are told apart by the page, not from one another."""
    stream: list[Item] = [
        article("a", url=_URL),
        article("b", variant=3, url=_URL),
        article("c", variant=3, url=_URL),
        article("b", variant=4, url=_URL),
        article("d", variant=4),
    ]
    assert _told(stream, size)[0] == ["", "revision of a", "exact of b", "revision of b", "exact of b"]


@_SIZES
def test_canonical_article_that_moves_is_succeeded(size: int) -> None:
    """An article whose new text copies another article leaves its cluster to its copies, and readers are told."""
    stream: list[Item] = [
        article("x", 1),
        article("a"),
        article("b", variant=1),
        article("a", 1, 2),
        article("c", variant=1),
        article("d", 1),
    ]
    links, successions, clusters = _told(stream, size)
    assert links == ["", "", "exact of a", "near of x", "exact of b", "exact of x"]
    assert successions == [Succession("a", "b", SuccessionReason.MOVED)]
    assert clusters["a"] is None
    assert clusters["b"][:2] == ("b", 1)
    assert clusters["x"][:2] == ("x", 2)


@_SIZES
def test_copy_that_moves_leaves_no_trace(size: int) -> None:
    """A copy whose new text copies another article is counted there, and no longer in its old cluster."""
    stream: list[Item] = [article("x", 1), article("a"), article("b", variant=1), article("b", 1, 2)]
    links, successions, clusters = _told(stream, size)
    assert links[2:] == ["exact of a", "near of x"]
    assert successions == []
    assert (clusters["a"][:2], clusters["x"][:2]) == (("a", 0), ("x", 1))


@_SIZES
@pytest.mark.parametrize(
    ("variant", "link", "copy"), [(0, "redelivery of a", "near of a"), (4, "revision of a", "exact of a")]
)
def test_article_is_known_as_long_as_its_cluster_is_called_by_it(variant: int, link: str, copy: str, size: int) -> None:
    """While copies of its text are found, an id stays the same article: its old text or a new one is its own."""
    stream: list[Item] = [
        article("a"),
        article("b", variant=3, at=BEGIN + DAY),
        article("a", variant=variant, at=BEGIN + 2 * DAY + 1),
        article("c", variant=variant, at=BEGIN + 2 * DAY + 2),
    ]
    links, _, clusters = _told(stream, size)
    assert links == ["", "near of a", link, copy]
    assert {name: one[:2] for name, one in clusters.items()} == {"a": ("a", 2)}


@_SIZES
def test_page_of_an_article_is_known_as_long_as_its_cluster_is_called_by_it(size: int) -> None:
    """Windows after its own message, another text of its page still revises it, and the page alone withdraws it."""
    stream: list[Item] = [article("a", url=_URL), *(article(f"b{day}", at=BEGIN + day * DAY) for day in range(1, 8))]
    links, _, _ = _told([*stream, article("c", 1, at=BEGIN + 7 * DAY, url=_URL)], size)
    assert links == ["", *["exact of a"] * 7, "revision of a"]
    _, _, clusters = _told([*stream, Withdrawal("unknown", _URL)], size)
    assert clusters["a"] is None


@_SIZES
def test_three_texts_of_a_page_are_all_told_apart(size: int) -> None:
    """A third article of a page is not a copy of the first, nor a fourth of any; one with an earlier text is a copy."""
    stream: list[Item] = [
        article("a", url=_URL),
        article("b", variant=2, url=_URL),
        article("c", variant=5, url=_URL),
        article("d", variant=3, url=_URL),
        article("e", url=_URL),
        article("f", variant=3),
    ]
    links, _, _ = _told(stream, size)
    assert links == ["", "revision of a", "revision of b", "revision of c", "exact of a", "exact of d"]


@_SIZES
def test_copy_stands_in_with_its_newest_text(size: int) -> None:
    """A copy that changes and then succeeds is found by its new text, not by its old one."""
    stream: list[Item] = [
        article("a"),
        article("b"),
        article("b", variant=5),
        article("x", 1),
        Withdrawal("a"),
        article("c", variant=5),
    ]
    links, _, clusters = _told(stream, size)
    assert links == ["", "exact of a", "contained of a", "", "exact of b"]
    assert {name: one and one[:2] for name, one in clusters.items()} == {"a": None, "b": ("b", 1)}


@_SIZES
def test_canonical_article_that_still_is_like_its_copies_stays(size: int) -> None:
    """A copy that became canonical keeps its cluster, and is found, when its new text matches the other members."""
    stream: list[Item] = [
        article("c", variant=5),
        article("f", variant=2),
        article("f", variant=0),
        article("b", variant=5),
        article("g", variant=1),
    ]
    links, successions, _ = _told(stream, size, canonical="longest")
    assert links == ["", "contains of c", "revision of f", "exact of f", "exact of f"]
    assert successions[0] == Succession("c", "f", SuccessionReason.POLICY)


@_SIZES
def test_canonical_article_that_was_a_copy_leaves_with_a_text_of_its_own(size: int) -> None:
    """Only a founder keeps its copies whatever it becomes: this one took over theirs, and they are no copies of it."""
    stream: list[Item] = [
        article("c", variant=5),
        article("f", variant=0),
        article("f", 1),
        article("x", variant=5),
        article("y", 1),
    ]
    links, successions, clusters = _told(stream, size, canonical="longest")
    assert links == ["", "contains of c", "revision of f", "exact of c", "exact of f"]
    policy, moved = SuccessionReason.POLICY, SuccessionReason.MOVED
    assert successions == [Succession("c", "f", policy), Succession("f", "c", moved)]
    assert {name: one and one[:2] for name, one in clusters.items()} == {"c": ("c", 1), "f": ("f", 1)}


@_SIZES
def test_article_that_was_succeeded_leaves_with_a_text_of_its_own(size: int) -> None:
    """Once another article is canonical, a new text that copies none is unique: it has copies of its own."""
    stream: list[Item] = [
        article("short", variant=5),
        article("long", variant=0),
        article("short", 1),
        article("copy", 1, 2),
        article("late", variant=5),
    ]
    links, successions, clusters = _told(stream, size, canonical="longest")
    assert links == ["", "contains of short", "revision of short", "near of short", "contained of long"]
    assert successions == [Succession("short", "long", SuccessionReason.POLICY)]
    assert {name: one and one[:2] for name, one in clusters.items()} == {"long": ("long", 1), "short": ("short", 1)}


@_SIZES
def test_newest_texts_of_an_article_are_kept(size: int) -> None:
    """An article that keeps changing is found by its newest eight texts, redeliveries if they recur; older are new."""
    changing: list[Item] = [Article("a", body) for body in bodies()[10:22]]
    copies: list[Item] = [Article(f"c{n}", body) for n, body in enumerate(bodies()[10:22])]
    links, _, _ = _told([*changing, *copies], size)
    assert links[:12] == ["", *["revision of a"] * 11]
    assert links[12:] == ["", "", "", "", *["exact of a"] * 8]
    again, _, _ = _told([*changing, *changing[4:], changing[3]], size)
    assert again[12:] == [*["redelivery of a"] * 8, "revision of a"]


@_SIZES
def test_large_cluster_counts_each_copy_once(size: int) -> None:
    """With more copies than a cluster remembers by name, a new text or withdrawal of any copy is counted correctly."""
    names = [f"c{n}" for n in range(40)]
    stream: list[Item] = [article("a"), *(article(name, variant=1, source=name) for name in names)]
    stream += [article(name, variant=2, source=name) for name in names[::3]]
    assert _told(stream, size)[2]["a"][:2] == ("a", 40)
    withdrawn: list[Item] = [Withdrawal(name) for name in names[::2]]
    canonical, copies, _, _, sources = _told([*stream, *withdrawn], size)[2]["a"]
    assert (canonical, copies, sources) == ("a", 20, dict.fromkeys(["", *names[1::2]], 1))


@_SIZES
def test_redelivery_changes_no_cluster(size: int) -> None:
    """The same message again is not another copy."""
    stream: list[Item] = [article("a"), article("b", variant=1), article("b", variant=1, at=BEGIN + 1), article("a")]
    links, _, clusters = _told(stream, size)
    assert links[2:] == ["redelivery of a", "redelivery of a"]
    assert clusters["a"] == ("a", 1, BEGIN, BEGIN, {"": 2})


@_SIZES
def test_cluster_begins_with_the_first_text_of_its_article(size: int) -> None:
    """A new text of an article does not make it younger."""
    stream: list[Item] = [
        article("a"),
        article("a", 1, at=BEGIN + HOUR),
        article("b", 1, at=BEGIN + 2 * HOUR),
    ]
    assert _told(stream, size)[2] == {"a": ("a", 1, BEGIN, BEGIN + 2 * HOUR, {"": 2})}


@_SIZES
def test_copy_that_is_found_by_an_earlier_text_needs_none_beside_it_in_reserve(size: int) -> None:
    """Its newest text is that of the original; should that be withdrawn, the cluster is found by the other one."""
    stream = [article("a"), article("b", variant=3), article("b", variant=1), article("c")]
    with Deduplicator(settings=engine_settings(2)) as engine:
        decisions = [one for at in range(0, 4, size) for one in engine.add_batch(stream[at : at + size])]
        assert [one.indexed for one in decisions] == [True, True, False, False]
        assert engine.progress.entries == 2


@_SIZES
def test_copy_without_an_entry_is_kept_in_reserve_with_its_next_text(size: int) -> None:
    """If none is in reserve by then: should the original be withdrawn, the cluster is found by it."""
    stream: list[Item] = [
        article("a"),
        article("b", variant=1),
        article("c", variant=1),
        Withdrawal("b"),
        article("c", variant=2),
        Withdrawal("a"),
        article("d", variant=2),
    ]
    links, _, clusters = _told(stream, size)
    assert links == ["", "exact of a", "exact of a", "near of a", "exact of c"]
    assert clusters["c"][:2] == ("c", 1)


@_SIZES
@pytest.mark.parametrize("before", [0, 1], ids=["new", "seen before"])
@pytest.mark.parametrize(("variants", "indexed"), [(1, False), (2, False), (3, True)])
def test_cluster_with_as_many_indexed_copies_as_allowed_takes_no_more(
    variants: int, before: int, size: int, *, indexed: bool
) -> None:
    """Whether it was a new id or another text of a known one that made it full."""
    drifted = text(1, 0)[:32] + text(0, 0)[32:]
    stream = [article("a"), *[article("b", 2)] * before, article("b", variant=3), Article("c", drifted)]
    with Deduplicator(settings=engine_settings(2, variants=variants)) as engine:
        decisions = [one for at in range(0, 4, size) for one in engine.add_batch(stream[at : at + size])]
    assert [one.link and one.link.relation for one in decisions[-2:]] == [Relation.NEAR, Relation.NEAR]
    assert decisions[-1].indexed is indexed
