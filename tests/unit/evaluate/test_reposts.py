"""Generated reposts have correct labels, and the settings are respected."""

import random
from collections import Counter
from dataclasses import replace
from statistics import mean

import pytest
from pydantic import ValidationError

from deploy.demo.samples.corpus import BaseText
from stream_dedup import Article
from stream_dedup.evaluate.labelled import LabelledSet
from stream_dedup.evaluate.operators import OPERATORS
from stream_dedup.evaluate.overlap import OVERLAPS_FROM
from stream_dedup.evaluate.reposts import RepostSettings, _Maker, parse_edit, with_reposts
from stream_dedup.text.normal import Normaliser
from tests.unit.evaluate.test_overlap import plain_pairs

_HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def articles(texts: list[BaseText]) -> list[Article]:
    """Return the hand-written texts, an hour apart."""
    return [
        Article(f"{number}", text.body, text.title, url=f"https://a.example/{number}", published_ms=_HOUR_MS * number)
        for number, text in enumerate(texts, 1)
    ]


@pytest.fixture(scope="module")
def made(articles: list[Article]) -> LabelledSet:
    """Return reposts of all of them, three each, half of the later ones chained."""
    return with_reposts(articles, RepostSettings(seed=3, share=1, copies=3, chain=0.5))


def test_the_same_seed_makes_the_same_set(articles: list[Article], made: LabelledSet) -> None:
    """A set is reproducible, and another seed gives a different one."""
    settings = RepostSettings(seed=3, share=1, copies=3, chain=0.5)
    assert with_reposts(articles, settings).articles == made.articles
    other = settings.model_copy(update={"seed": 4})
    assert with_reposts(articles, other).articles != made.articles


def test_a_copy_is_of_the_cluster_of_what_it_was_made_from(made: LabelledSet) -> None:
    """A cluster is named after its original, and every copy descends from it, even in chains."""
    by_id = {labelled.article.id: labelled for labelled in made.articles}
    assert len(by_id) == len(made.articles)
    for labelled in made.articles:
        if labelled.original is None:
            assert (labelled.cluster, labelled.kind, labelled.strength) == (labelled.article.id, "", None)
        else:
            assert by_id[labelled.original].cluster == labelled.cluster
            assert labelled.kind in OPERATORS


def test_a_copy_comes_later_within_bounds(made: LabelledSet) -> None:
    """Articles are in order of time; a copy follows its source by five minutes to three days."""
    times = {each.article.id: each.article.published_ms or 0 for each in made.articles}
    assert list(times.values()) == sorted(times.values())
    delays = [times[each.article.id] - times[each.original] for each in made.articles if each.original]
    assert min(delays) >= 5 * 60_000
    assert max(delays) <= 72 * _HOUR_MS


def test_each_edit_is_used_about_equally_often(made: LabelledSet) -> None:
    """Use counts of strengths that fit all texts differ by only a few, so every row of a table has enough copies."""
    used = Counter((each.kind, each.strength) for each in made.articles if each.original)
    posts_too = [(name, level) for name in ("chain", "hashtags", "mentions") for level in OPERATORS[name].levels]
    counts = [used[edit] for edit in posts_too]
    assert max(counts) - min(counts) <= 2
    assert min(counts) >= 2


def test_posts_get_no_edits_of_articles(made: LabelledSet) -> None:
    """A text of up to 140 characters gets no edit meant for articles, nor does a repost of it, which may be longer."""
    by_id = {labelled.article.id: labelled.article for labelled in made.articles}
    for labelled in made.articles:
        if labelled.original and len(by_id[labelled.cluster].body) <= 140:
            assert OPERATORS[labelled.kind].posts


def test_chains_are_as_frequent_as_asked(articles: list[Article], made: LabelledSet) -> None:
    """Of all copies after an article's first, half are made from copies; none if the probability is 0."""
    copies = [each for each in made.articles if each.original]
    later = len(copies) - len({each.cluster for each in copies})
    chained = sum(each.original != each.cluster for each in copies)
    assert 0.35 < chained / later < 0.65
    straight = with_reposts(articles, RepostSettings(share=1, copies=3, chain=0))
    assert all(each.original in {None, each.cluster} for each in straight.articles)


def test_the_share_of_articles_that_get_copies_is_exact(articles: list[Article]) -> None:
    """A share of 0.2 is a fifth of the remaining articles, with one copy each if the average is one."""
    labelled = with_reposts(articles, RepostSettings(share=0.2, copies=1)).articles
    originals = sum(each.original is None for each in labelled)
    copied = [each.cluster for each in labelled if each.original]
    assert len(copied) == len(set(copied)) == round(0.2 * originals)
    assert len(with_reposts(articles[:3], RepostSettings(share=0.01, copies=1)).articles) == 4  # one at least


def test_overlaps_between_clusters_are_noted_exactly(made: LabelledSet) -> None:
    """An article that lent sentences to a copy is noted as overlapping if plain sets of 5-grams agree."""
    clusters = made.clusters()
    inserted = [place for place, each in enumerate(made.articles) if each.kind in {"insert", "merge"}]
    noted = {tuple(pair) for pair in made.overlapping.tolist()}
    assert any(clusters[first] != clusters[second] for first, second in noted)
    assert all(clusters[first] != clusters[second] for first, second in noted)
    lent = [pair for pair in noted if set(pair) & set(inserted)]
    assert lent
    for first, second in lent:
        bodies = [Normaliser()(made.articles[place].article.body) for place in (first, second)]
        assert plain_pairs(bodies, OVERLAPS_FROM) == [[0, 1]]


def test_only_what_exists_is_borrowed_from(articles: list[Article], made: LabelledSet) -> None:
    """An article that lends sentences to a copy was published before its original, unless that is the first."""
    times = {article.id: article.published_ms or 0 for article in articles}
    lent = [
        (made.articles[lender].article.id, made.articles[copy].cluster)
        for pair in made.overlapping.tolist()
        for copy, lender in (pair, pair[::-1])
        if made.articles[copy].kind in {"insert", "merge"} and made.articles[lender].original is None
    ]
    assert len(lent) > 10
    assert all(times[lender] < times[original] or original == articles[0].id for lender, original in lent)


def test_articles_that_overlap_before_any_edit_are_left_out(articles: list[Article]) -> None:
    """An article that occurs under two ids would be an unlabelled copy, so the second is left out."""
    twin = replace(articles[0], id="twin", published_ms=_HOUR_MS * 1_000)
    labelled = with_reposts([*articles, twin], RepostSettings()).articles
    assert "twin" not in {each.article.id for each in labelled}
    assert articles[0].id in {each.article.id for each in labelled}


def test_articles_without_a_time_come_in_their_order(articles: list[Article]) -> None:
    """Without times, the originals keep the order of the file, a minute apart."""
    timeless = [replace(article, published_ms=None) for article in articles]
    labelled = with_reposts(timeless, RepostSettings(share=0.1)).articles
    order = [each.article.id for each in labelled if each.original is None]
    assert order == sorted(order, key=int)
    times = {each.article.id: each.article.published_ms or 0 for each in labelled if each.original is None}
    assert len({moment - 60_000 * int(number) for number, moment in times.items()}) == 1


def test_a_copy_has_no_url_of_the_original(made: LabelledSet) -> None:
    """Another text under the same URL would be a revision, not a copy."""
    assert not any(each.article.url for each in made.articles if each.original)


def test_copies_of_copies_are_made_of_what_a_page_shows(articles: list[Article]) -> None:
    """A copy of a page with tags is made from its text, so that no entity ends up in full width."""
    settings = RepostSettings(share=1, copies=3, chain=1, edits=("references:1", "width"))
    made = with_reposts(articles, settings).articles
    kinds = {each.article.id: each.kind for each in made}
    chained = [each for each in made if each.original and kinds[each.original] == "references"]
    assert any(each.kind == "width" for each in chained)
    assert not any("＆＃" in each.article.body for each in chained if each.kind == "width")


@pytest.mark.parametrize(("least", "made"), [(24, False), (5, True)])
def test_a_scrap_is_no_copy(least: int, made: bool) -> None:  # noqa: FBT001  # a parameter of the test
    """Half of two ten-character sentences is too short for one minimum and long enough for the other."""
    bodies = ["图书馆昨日向市民开放。首日接待万余名读者。", "今夜有雷阵雨请添衣物。明日转晴气温将回升。"]
    articles = [Article(f"{number}", body) for number, body in enumerate(bodies)]
    settings = RepostSettings(share=1, edits=("drop:0.5",), least_chars=least)
    if made:
        assert any(each.original for each in with_reposts(articles, settings).articles)
        return
    # A set without a single copy would give perfect figures to whatever finds nothing.
    with pytest.raises(ValueError, match=r"no repost can be made: none of the edits \(drop:0\.5\) can change any"):
        with_reposts(articles, settings)


@pytest.mark.parametrize("copies", [1.5, 12])
def test_articles_have_as_many_copies_as_asked_for(copies: float, texts: list[BaseText]) -> None:
    """On average, though no article has more than five times as many, or twenty if that is more."""
    articles = [Article(f"{number}", text.body, published_ms=number) for number, text in enumerate(texts)]
    maker = _Maker(articles, RepostSettings(share=1, copies=copies))
    counts = [maker._how_many(random.Random(number)) for number in range(3_000)]  # noqa: SLF001  # making them all takes minutes
    assert mean(counts) == pytest.approx(copies, rel=0.05)
    assert max(counts) <= max(20, 5 * copies)


def test_no_copy_is_left_without_a_word() -> None:
    """If one of two sentences is dropped and one is left-over HTML, the one with words is kept."""
    bodies = [f"&nbsp;\n{words}。" for words in ("图书馆昨日向市民开放", "今夜有雷阵雨请添衣", "海雁队三比二获胜")]
    settings = RepostSettings(share=1, copies=5, edits=("drop:0.5",))
    articles = [Article(f"{number}", body) for number, body in enumerate(bodies)]
    for seed in range(5):
        made = with_reposts(articles, settings.model_copy(update={"seed": seed}))
        assert all("。" in each.article.body for each in made.articles)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("shorten", "'shorten' is not an edit operator; choose from verbatim, boiler"),
        ("drop:1.2", "drop cannot have the strength 1.2: share of the sentences dropped, above 0, up to 0.9"),
        ("drop:a lot", "drop cannot have the strength 'a lot': share of the sentences dropped, above 0, up to 0.9"),
        ("shuffle:0.5", "shuffle cannot have the strength 0.5: it takes none"),
    ],
)
def test_edits_that_there_are_not_are_refused(edit: str, message: str) -> None:
    """The message lists the known edits, and the settings refuse whatever the parser refuses."""
    with pytest.raises(ValueError, match=message):
        parse_edit(edit)
    with pytest.raises(ValidationError, match=message):
        RepostSettings(edits=(edit,))


def test_edits_are_parsed_with_their_strengths() -> None:
    """A bare name means all default strengths; explicit ones replace them."""
    assert [edit.strength for edit in parse_edit("drop:0.15,0.4")] == [0.15, 0.4]
    assert [edit.strength for edit in parse_edit("drop")] == list(OPERATORS["drop"].levels)
    assert [edit.strength for edit in parse_edit("shuffle")] == [None]


def test_impossible_inputs_are_refused(articles: list[Article]) -> None:
    """Two articles with one id, a single article, and reversed delays are refused."""
    with pytest.raises(ValueError, match="the id '1' belongs to two articles"):
        with_reposts([articles[0], articles[0]], RepostSettings())
    with pytest.raises(ValueError, match="1 article that does not overlap others: reposts are made from two or more"):
        with_reposts(articles[:1], RepostSettings())
    with pytest.raises(ValidationError, match="least_minutes = 9 is greater than most_minutes = 3"):
        RepostSettings(least_minutes=9, most_minutes=3)
