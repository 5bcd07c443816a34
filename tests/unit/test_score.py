"""The benchmark's scorer on a case small enough to score by hand."""

from tests.benchmarks.score import Clusters, overlap, score

_STORY = "图书馆昨日向市民开放，首日接待读者一万二千人次。"
_OTHER = "今夜有雷阵雨，气温下降六到八度，请注意添衣。"
_BODIES = {"a": _STORY, "b": "【转载】" + _STORY, "c": _OTHER, "d": _STORY, "e": _OTHER + _OTHER}


def test_links_are_followed_through_chains() -> None:
    """An article linked to a copy belongs to the copy's cluster."""
    clusters = Clusters([{"id": "b", "duplicate_of": "a"}, {"id": "d", "duplicate_of": "b"}])
    assert clusters.root("d") == clusters.root("a")
    assert clusters.root("c") != clusters.root("a")


def test_recall_and_precision_of_a_case_worked_by_hand() -> None:
    """Two of three reposts are found; of three links, the one between unrelated texts is wrong."""
    truth = [
        {"id": "b", "repost_of": "a", "kind": "boiler"},
        {"id": "d", "repost_of": "a", "kind": "verbatim"},
        {"id": "e", "repost_of": "c", "kind": "verbatim"},
    ]
    links = [{"id": "b", "duplicate_of": "a"}, {"id": "d", "duplicate_of": "b"}, {"id": "c", "duplicate_of": "a"}]
    result = score(links, truth, _BODIES)
    assert result.recall == {"boiler": (1, 1), "verbatim": (1, 2)}
    assert (result.right, result.links) == (2, 3)


def test_overlap_is_that_of_exact_sets() -> None:
    """Containment is computed from the character 5-grams of both texts."""
    letters = [character for character in _STORY if character.isalnum()]
    story = {"".join(letters[i : i + 5]) for i in range(len(letters) - 4)}
    prefixed = ["转", "载", *letters]
    other = {"".join(prefixed[i : i + 5]) for i in range(len(prefixed) - 4)}
    assert overlap(_BODIES, {"id": "b", "duplicate_of": "a"}) == len(story & other) / min(len(story), len(other)) == 1
    assert overlap(_BODIES, {"id": "c", "duplicate_of": "a"}) == 0
