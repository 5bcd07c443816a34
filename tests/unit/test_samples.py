"""The demo's sample stream: its counts, its labels, and texts that justify the labels.

Knows the stream; does not know the service that judges it.
"""

import json
import re
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from opencc import OpenCC

from deploy.demo.samples import Sample, sample_stream
from deploy.demo.samples.corpus import Form, base_texts, sites
from deploy.demo.samples.operators import OPERATORS

_ROOT = Path(__file__).parents[2]
_GRAM = 5
_FIRST_HAND = ("original", "event-pair", "bulletin")
_OPERATOR_NAMES = {operator.__name__ for operators in OPERATORS.values() for operator in operators}
_REASONS = Counter(
    {
        "invalid_json": 1,
        "invalid_utf8": 1,
        "empty_body": 2,
        "missing_field": 1,
        "wrong_type": 2,
        "not_an_object": 1,
        "unknown_article": 1,
        "invalid_time": 1,
        "future_time": 1,
        "too_large": 1,
    }
)


@cache
def _stream(seed: int = 20) -> tuple[Sample, ...]:
    return tuple(sample_stream(seed))


def _sound(seed: int = 20) -> list[tuple[Sample, dict[str, Any]]]:
    """Return the messages that are not broken, with their decoded values."""
    return [(sample, json.loads(sample.value or b"")) for sample in _stream(seed) if sample.dead_reason is None]


def _first_hand() -> list[tuple[Sample, frozenset[str]]]:
    return [(sample, _grams(fields["body"])) for sample, fields in _sound() if sample.kind in _FIRST_HAND]


@cache
def _simplifier() -> OpenCC:
    return OpenCC("t2s")


@cache
def _grams(body: str) -> frozenset[str]:
    plain = re.sub(r"\W", "", _simplifier().convert(unicodedata.normalize("NFKC", body).lower()))
    return frozenset(plain[at : at + _GRAM] for at in range(max(1, len(plain) - _GRAM + 1)))


def _moment(written: str | int) -> datetime:
    if isinstance(written, str):
        return datetime.fromisoformat(written)
    return datetime.fromtimestamp(written / 1000 if written > 10**11 else written, UTC)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _containment(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other))


def test_same_seed_gives_the_same_stream() -> None:
    """The stream depends only on its seed."""
    assert sample_stream(20) == list(_stream(20))
    assert sample_stream(21) != list(_stream(20))


def test_stream_is_large_and_varied() -> None:
    """At least 400 messages, at least 180 reposts, and at least 14 kinds of reposts."""
    kinds = Counter(sample.kind for sample in _stream())
    assert kinds.total() >= 400
    assert sum(kinds[name] for name in _OPERATOR_NAMES) >= 180
    assert len(_OPERATOR_NAMES) >= 14
    assert set(kinds) == {*_OPERATOR_NAMES, *_FIRST_HAND, "redelivery", "broken"}


def test_hand_written_texts_have_the_promised_numbers() -> None:
    """75 news articles, 5 mixed ones, 35 posts, 15 English articles and at least 4 event pairs."""
    counts = Counter(text.id.partition("-")[0] for text in base_texts())
    assert counts["news"] >= 75
    assert counts["mixed"] >= 5
    assert counts["post"] >= 35
    assert counts["english"] >= 15
    events = Counter(text.event for text in base_texts() if text.event)
    assert len(events) >= 4
    assert set(events.values()) == {2}


def test_hand_written_texts_have_realistic_lengths() -> None:
    """Articles have 180 to 700 characters, posts 30 to 140, English articles 80 to 250 words."""
    for text in base_texts():
        if text.form is Form.NEWS:
            assert 180 <= len(text.body) <= 700, text.id
        elif text.form is Form.POST:
            assert 30 <= len(text.body) <= 140, text.id
        else:
            assert 80 <= len(text.body.split()) <= 250, text.id


def test_every_hand_written_text_is_in_the_stream() -> None:
    """Each text arrives once as an original, unchanged."""
    bodies = Counter(fields["body"] for sample, fields in _sound() if sample.kind in _FIRST_HAND)
    assert all(bodies[text.body] == 1 for text in base_texts())


def test_ids_are_unique_but_for_redeliveries() -> None:
    """Only a redelivery has the id of another message, the one that it repeats."""
    ids = Counter(sample.id for sample in _stream() if sample.id and sample.kind != "redelivery")
    assert set(ids.values()) == {1}


def test_urls_are_unique_but_for_redeliveries() -> None:
    """No two articles share a URL, so none counts as a new text of another."""
    sound = [(sample, fields) for seed in (20, 21) for sample, fields in _sound(seed) if sample.kind != "redelivery"]
    urls = Counter(fields["url"] for _, fields in sound if "url" in fields)
    assert set(urls.values()) == {1}
    assert len(urls) > 900


def test_tombstone_names_an_article_that_never_was() -> None:
    """The key of the message without a value is not the id of any article."""
    (tombstone,) = [sample for sample in _stream() if sample.value is None]
    assert tombstone.key is not None
    assert tombstone.key.decode() not in {sample.id for sample in _stream()}


def test_sound_messages_are_articles_with_their_label_s_id() -> None:
    """A message that is not broken is a JSON object with a body, a publisher, a time and its label's id."""
    names = {site.name for form in Form for site in sites(form)}
    for sample, fields in _sound():
        assert fields.get("id") == sample.id
        assert fields["body"].strip()
        assert isinstance(fields["title"], str)
        assert fields["source"] in names
        assert "published_at" in fields


def test_some_articles_lack_an_id_or_a_url() -> None:
    """One article is identified only by its URL, and one by neither."""
    nameless = [("url" in fields, sample.kind) for sample, fields in _sound() if sample.id is None]
    assert sorted(nameless) == [(False, "original"), (True, "original")]


def test_some_messages_have_unknown_fields_and_some_no_key() -> None:
    """Readers must cope with unknown fields and messages without a key."""
    known = {"id", "title", "body", "url", "source", "published_at"}
    assert 50 <= sum(bool(set(fields) - known) for _, fields in _sound()) <= 250
    assert 50 <= sum(sample.key is None for sample in _stream()) <= 200


def test_times_are_written_in_every_way_and_lie_within_three_days() -> None:
    """ISO 8601 with an offset or Z, epoch seconds and epoch milliseconds, all within 72 hours."""
    written = [fields["published_at"] for _, fields in _sound()]
    moments = [_moment(time) for time in written]
    ways = Counter(time[-6:] if isinstance(time, str) else f"{len(str(time))} digits" for time in written)
    endings = {way if way == "+08:00" else way[-1] for way in ways}
    assert endings == {"+08:00", "Z", "s"}
    assert {"10 digits", "13 digits"} <= set(ways)
    assert max(moments) <= datetime.fromisoformat("2026-10-18T20:00:00+08:00")
    assert max(moments) - min(moments) <= timedelta(hours=72)


def test_reposts_follow_their_originals() -> None:
    """A repost arrives after its original, and was published 3 minutes to 30 hours later."""
    seen: dict[str, datetime] = {}
    for sample, fields in _sound():
        moment = _moment(fields["published_at"])
        if sample.repost_of and sample.kind != "redelivery":
            delay = moment - seen[sample.repost_of]
            assert timedelta(minutes=3) <= delay <= timedelta(hours=30, minutes=1), sample.id
        if sample.id:
            seen.setdefault(sample.id, moment)


def test_messages_arrive_nearly_in_the_order_of_their_times() -> None:
    """Except for redeliveries, no message arrives more than three minutes after a later one."""
    latest = datetime.fromtimestamp(0, UTC)
    for sample, fields in _sound():
        moment = _moment(fields["published_at"])
        assert sample.kind == "redelivery" or moment >= latest - timedelta(minutes=3)
        latest = max(latest, moment)


def test_redeliveries_repeat_an_earlier_message_to_the_byte() -> None:
    """A redelivery has the key and value of an earlier message."""
    seen: dict[str | None, tuple[bytes | None, bytes | None]] = {}
    redelivered = 0
    for sample in _stream():
        if sample.kind == "redelivery":
            redelivered += 1
            assert seen[sample.repost_of] == (sample.key, sample.value)
        seen.setdefault(sample.id, (sample.key, sample.value))
    assert redelivered == 2


def test_every_repost_but_the_verbatim_changes_its_original() -> None:
    """Every operator but the verbatim copy changes the title or the body."""
    texts = {sample.id: (fields["title"], fields["body"]) for sample, fields in _sound() if sample.kind != "redelivery"}
    for sample, fields in _sound():
        if sample.kind in _OPERATOR_NAMES:
            changed = (fields["title"], fields["body"]) != texts[sample.repost_of]
            assert changed == (sample.kind != "verbatim"), sample.id


@pytest.mark.parametrize("seed", [20, 21])
def test_every_repost_shares_three_fifths_with_its_original(seed: int) -> None:
    """A repost shares at least 0.6 of the smaller set of 5-grams with its original."""
    bodies = {sample.id: fields["body"] for sample, fields in _sound(seed)}
    for sample, fields in _sound(seed):
        if sample.repost_of:
            shared = _containment(_grams(fields["body"]), _grams(bodies[sample.repost_of]))
            assert shared >= 0.6, (sample.id, shared)


def test_first_hand_texts_are_no_copies_of_one_another() -> None:
    """Two originals have a Jaccard of 5-grams below 0.5; two bulletins, below 0.9."""
    for (one, grams), (other, other_grams) in combinations(_first_hand(), 2):
        limit = 0.9 if one.kind == other.kind == "bulletin" else 0.5
        assert _jaccard(grams, other_grams) < limit, (one.id, other.id)


def test_no_first_hand_text_stands_in_an_earlier_message() -> None:
    """Reposts quote only what arrived before, so less than a tenth of an original occurs in an earlier message."""
    earlier: list[frozenset[str]] = []
    for sample, fields in _sound():
        grams = _grams(fields["body"])
        if sample.kind in ("original", "event-pair"):
            assert all(len(grams & other) < 0.1 * len(grams) for other in earlier), sample.id
        earlier.append(grams)


def test_bulletins_of_a_template_differ_in_five_numbers() -> None:
    """There are at least 6 templates with 6 to 8 bulletins each, which differ pairwise in at least 5 numbers."""
    bulletins: dict[str, list[Counter[str]]] = defaultdict(list)
    for sample, fields in _sound():
        if sample.kind == "bulletin" and sample.id:
            assert 60 <= len(fields["body"]) <= 300, sample.id
            bulletins[sample.id.partition("-")[0]].append(Counter(re.findall(r"\d+", fields["body"])))
    assert len(bulletins) >= 6
    for numbers in bulletins.values():
        assert 6 <= len(numbers) <= 8
        assert all((one - other).total() >= 5 for one, other in combinations(numbers, 2))


def test_broken_messages_carry_their_reason() -> None:
    """Each kind of fault occurs, and only broken messages have a reason."""
    reasons = Counter(sample.dead_reason for sample in _stream() if sample.kind == "broken")
    assert reasons == _REASONS
    assert all(sample.dead_reason is None for sample in _stream() if sample.kind != "broken")


def test_broken_messages_are_broken_as_labelled() -> None:
    """Each broken message has the fault given by its reason."""
    broken: dict[str, list[bytes | None]] = defaultdict(list)
    for sample in _stream():
        if sample.dead_reason:
            broken[sample.dead_reason].append(sample.value)
    assert broken.pop("unknown_article") == [None]
    with pytest.raises(UnicodeDecodeError):
        (broken.pop("invalid_utf8")[0] or b"").decode()
    with pytest.raises(json.JSONDecodeError):
        json.loads((broken.pop("invalid_json")[0] or b"").decode())
    decoded = {reason: [json.loads(value or b"") for value in values] for reason, values in broken.items()}
    assert isinstance(decoded["not_an_object"][0], list)
    assert not any(fields["body"].strip() for fields in decoded["empty_body"])
    assert "body" not in decoded["missing_field"][0]
    wrong = [(type(fields["id"]), type(fields["body"])) for fields in decoded["wrong_type"]]
    assert sorted(wrong, key=str) == [(dict, str), (str, int)]
    with pytest.raises(ValueError, match="Invalid isoformat"):
        _moment(decoded["invalid_time"][0]["published_at"])
    assert _moment(decoded["future_time"][0]["published_at"]).year > 2090
    assert len(decoded["too_large"][0]["body"]) > 1_200_000


def test_command_writes_the_sound_articles_and_prints_the_counts(tmp_path: Path) -> None:
    """The file has each unbroken message on a line, in order; the output counts every kind."""
    out = tmp_path / "samples.jsonl"
    command = [sys.executable, "-m", "deploy.demo.samples", "--out", str(out)]
    printed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
    assert out.read_bytes().splitlines() == [sample.value for sample, _ in _sound()]
    counts = {line.split()[1]: int(line.split()[0]) for line in printed.splitlines()[:-1]}
    assert counts == Counter(sample.kind for sample in _stream())
