"""How decisions disagree, and which disagreements are sampled."""

import json
from dataclasses import replace

import pytest

from stream_dedup import Article
from stream_dedup.article import Decision, Link, Relation, Source
from stream_dedup.engine.shadow import Disagreement, disagreement_json, disagreement_of, is_sampled
from stream_dedup.output_fields import link_fields
from stream_dedup.settings import SettingsError, load_settings

_ARTICLE = Article("one", "一段正文")
_UNIQUE = Decision(_ARTICLE, unique=True, fingerprint=1, epoch=0, link=None, indexed=True)
_LINK = Link("original", "matched", Relation.NEAR, 0.5, 0.6, 3, Source.LANDMARK)
_COPY = replace(_UNIQUE, unique=False, link=_LINK, indexed=False)
_REVISION = replace(_UNIQUE, link=replace(_LINK, relation=Relation.REVISION))


@pytest.mark.parametrize(
    ("live", "shadow", "found"),
    [
        (_UNIQUE, _UNIQUE, None),
        (_COPY, _COPY, None),
        (_UNIQUE, _COPY, Disagreement.DUPLICATE),
        (_COPY, _UNIQUE, Disagreement.UNIQUE),
        (_UNIQUE, _REVISION, Disagreement.RELATION),
        (_REVISION, _UNIQUE, Disagreement.RELATION),
        (_COPY, replace(_COPY, link=replace(_LINK, relation=Relation.CONTAINS)), Disagreement.RELATION),
        (_COPY, replace(_COPY, link=replace(_LINK, duplicate_of="another")), Disagreement.ORIGINAL),
        (_COPY, replace(_COPY, link=replace(_LINK, matched="another")), None),
        (_COPY, replace(_COPY, fingerprint=2, epoch=1, link=replace(_LINK, jaccard=0.4, hamming=9)), None),
    ],
)
def test_what_readers_of_the_topics_would_notice_is_a_disagreement(
    live: Decision, shadow: Decision, found: Disagreement | None
) -> None:
    """Unique or not, the relation and the original count; the numbers and the matched copy do not."""
    assert disagreement_of(live, shadow) is found


def test_both_decisions_are_told() -> None:
    """Each has its numbers."""
    told = json.loads(disagreement_json(Disagreement.UNIQUE, _COPY, _UNIQUE, 0))
    assert (told["id"], told["disagreement"]) == ("one", "unique")
    assert (told["live"]["decision"], told["live"]["duplicate_of"], told["live"]["jaccard"]) == (
        "duplicate",
        "original",
        0.5,
    )
    assert (told["shadow"]["decision"], told["shadow"]["duplicate_of"]) == ("unique", None)


def test_shares_are_rounded_as_those_of_links() -> None:
    """The numbers are the same as in the link for the same article."""
    copy = replace(_COPY, link=replace(_LINK, jaccard=0.6539750434276488, containment=0.99999))
    told = json.loads(disagreement_json(Disagreement.UNIQUE, copy, _UNIQUE, 0))["live"]
    assert copy.link is not None
    link = link_fields(copy, copy.link, 0)
    assert (told["jaccard"], told["containment"]) == (link["jaccard"], link["containment"]) == (0.654, 1.0)


def test_a_sample_is_a_share_and_smaller_ones_are_parts_of_larger_ones() -> None:
    """Of 4,000 ids, a quarter is within 4 standard deviations of 1,000: sqrt(4000 * 0.25 * 0.75) is 27.4."""
    names = [f"article-{number}" for number in range(4_000)]
    quarter = {name for name in names if is_sampled(name, 0.25)}
    assert abs(len(quarter) - 1_000) < 4 * 27.4
    assert {name for name in names if is_sampled(name, 0.1)} < quarter
    assert not any(is_sampled(name, 0.0) for name in names)
    assert all(is_sampled(name, 1.0) for name in names)


def test_thresholds_of_the_shadow_are_those_in_force_but_for_some() -> None:
    """Thresholds that the shadow does not set are those in force."""
    flags = ["shadow.enabled=true", "verify.numbers_min=5", "shadow.verify.near_jaccard=0.5"]
    shadow = load_settings(flags=flags).shadow_verify()
    assert (shadow.near_jaccard, shadow.numbers_min) == (0.5, 5)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["shadow.enabled=true"], "no threshold in shadow.verify differs"),
        (["shadow.enabled=true", "shadow.verify.near_jaccard=0.33"], "no threshold in shadow.verify differs"),
        (
            ["shadow.verify.near_jaccard=2"],
            r"shadow\.verify\.near_jaccard = '2': it must be a number, at least 0\.05 and at most 1",
        ),
        (
            ["shadow.verify.near_jacard=0.5"],
            r"shadow\.verify\.near_jacard = '0.5': no such setting; did you mean shadow\.verify\.near_jaccard\?",
        ),
        (["shadow.verify.foo=2"], r"shadow\.verify\.foo = '2': no such setting; available: near_jaccard, "),
        (
            ["shadow.verify.foo=2", "shadow.verify.near_jaccard=7"],
            r"(?s)near_jaccard = '7': .*\(.*\)\n *shadow\.verify\.foo = '2': no such setting",
        ),
        (
            ["shadow.enabled=true", "shadow.verify.near_jaccard=0.5", "shadow.topic=articles.dead"],
            "the topics written to must all differ",
        ),
        (
            ["shadow.enabled=true", "shadow.verify.near_jaccard=0.5", "input.topics=^articles\\..*"],
            "matches",
        ),
    ],
)
def test_what_would_make_no_sense_is_refused(flags: list[str], told: str) -> None:
    """Errors give the setting and its value, and come before anything starts."""
    with pytest.raises(SettingsError, match=told):
        load_settings(flags=flags)
