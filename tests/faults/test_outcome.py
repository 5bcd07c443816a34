"""The checker itself: each way to break the promise is found and named in made-up records."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tests.faults.outcome import Outcome, faults, faults_so_far, outcome_of
from tests.stream.messages import Headers
from tests.stream.records import Record
from tests.stream.topics import Topics

_TOPICS = Topics("in", "unique", "duplicates", "dead", "clusters", "group")
Records = dict[str, list[Record]]
Change = Callable[[Records], object]


def _sent(number: int, name: str = "") -> Record:
    headers: Headers = [("n", str(number).encode())]
    return Record("in", number, name.encode() or None, json.dumps({"id": name}).encode(), headers)


def _unique(sent: Record, **own: str) -> Record:
    headers = [*sent.headers, *((f"stream_dedup.{name}", value.encode()) for name, value in own.items())]
    return Record("unique", 0, sent.key, sent.value, headers)


def _link(sent: Record, matched: str | None, relation: str = "near", **fields: object) -> Record:
    link = {
        "id": (sent.key or b"").decode(),
        "duplicate_of": matched,
        "matched": matched,
        "relation": relation,
        "topic": sent.topic,
        "partition": sent.partition,
        "offset": sent.offset,
        "decided_at": "2026-11-20T00:00:00.000Z",
        **fields,
    }
    return Record("duplicates", 0, sent.key, json.dumps(link).encode(), [])


def _dead(sent: Record) -> Record:
    own = {"reason": "invalid_json", "topic": "in", "partition": "0", "offset": str(sent.offset)}
    return replace(_unique(sent, **own), topic="dead")


_INPUT = [_sent(0, "a"), _sent(1, "b"), _sent(2), _sent(3, "c"), _sent(4, "a"), _sent(5, "d")]


def _sound() -> Records:
    """Return a valid run: a is unique, b and c copy it, one is broken, a is withdrawn, d is unique."""
    a, b, broken, c, gone, d = _INPUT
    return {
        "in": list(_INPUT),
        "unique": [_unique(a, fingerprint="0"), _unique(d, fingerprint="1")],
        "duplicates": [
            _link(b, "a"),
            _link(c, "b", duplicate_of="a"),
            _link(gone, None, "withdrawn", duplicate_of="b"),
            _link(b, None, "succession", duplicate_of="b", offset=4),
        ],
        "dead": [_dead(broken)],
        "clusters": [
            Record("clusters", 0, b"a", b'{"copies": 1}', []),
            Record("clusters", 1, b"a", None, []),
            Record("clusters", 2, b"b", b'{"copies": 1, "updated_at": "x"}', []),
        ],
    }


def _outcome(records: Mapping[str, list[Record]]) -> Outcome:
    return outcome_of(records, _TOPICS)


def _changed(change: Change) -> Outcome:
    records = _sound()
    change(records)
    return _outcome(records)


def test_sound_run_has_no_faults() -> None:
    """A run that keeps the promise has no fault, alone or compared with itself."""
    outcome = _outcome(_sound())
    assert outcome.count == len(_INPUT)
    assert faults(outcome) == faults(outcome, outcome) == faults_so_far(outcome, outcome) == []


def test_moment_of_the_decision_may_differ() -> None:
    """Two runs may decide at different times, and clusters may pass through different states."""

    def later(records: Records) -> None:
        records["duplicates"][0] = _link(_INPUT[1], "a", decided_at="2026-11-21T00:00:00.000Z")
        records["clusters"][0] = Record("clusters", 0, b"a", b'{"copies": 7}', [])
        records["clusters"][2] = Record("clusters", 2, b"b", b'{"copies": 1, "updated_at": "y"}', [])

    assert faults(_changed(later), _outcome(_sound())) == []


_BROKEN: dict[str, tuple[Change, str, str]] = {
    "lost unique": (lambda of: of["unique"].pop(), "lost", "0@5"),
    "lost link": (lambda of: of["duplicates"].pop(1), "lost", "0@3"),
    "lost dead letter": (lambda of: of["dead"].clear(), "lost", "0@2"),
    "unique twice": (lambda of: of["unique"].append(of["unique"][0]), "doubled", "0@0 a in unique and 0@0 a in unique"),
    "link twice": (lambda of: of["duplicates"].append(of["duplicates"][0]), "doubled", "0@1 b"),
    "dead twice": (lambda of: of["dead"].append(of["dead"][0]), "doubled", "0@2"),
    "unique and link": (lambda of: of["unique"].append(_unique(_INPUT[1])), "doubled", "in unique and 0@1 b in dup"),
    "unique and dead": (lambda of: of["dead"].append(_dead(_INPUT[0])), "doubled", "0@0"),
    "withdrawn twice": (lambda of: of["duplicates"].append(of["duplicates"][2]), "doubled", "0@4 a"),
    "unique of no message": (lambda of: of["unique"].append(_unique(_sent(77, "x"))), "invented", "nowhere x"),
    "link of no message": (lambda of: of["duplicates"].append(_link(_sent(77, "x"), "a")), "invented", "0@77 x"),
    "link of another topic": (
        lambda of: of["duplicates"].append(_link(_sent(5, "d"), "a", topic="other")),
        "invented",
        "nowhere d",
    ),
    "dead letter with the bytes of another": (
        lambda of: of["dead"].append(replace(_dead(_sent(3, "c")), headers=_dead(_sent(5)).headers)),
        "altered",
        "key, value",
    ),
    "other bytes": (lambda of: of["unique"].append(replace(of["unique"].pop(), value=b"{}")), "altered", "value"),
    "lost header": (
        lambda of: of["in"].append(replace(of["in"].pop(0), headers=[("n", b"0"), ("crawler", b"x")])),
        "altered",
        "headers",
    ),
    "name that never was": (lambda of: _relink(of, 0, "ghost"), "contradicted", "names ghost"),
    "name of a dead letter": (lambda of: _relink(of, 0, ""), "contradicted", "names "),
    "name that comes later": (lambda of: _relink(of, 0, "d"), "contradicted", "0@1 b in duplicates: names d"),
    "name of its own": (lambda of: _relink(of, 0, "b"), "contradicted", "names b"),
    "name of a withdrawn article": (
        lambda of: of["unique"].append(_unique(of["unique"].pop(), relation="revision", matched="a")),
        "contradicted",
        "0@5 d in unique: names a",
    ),
}


def _relink(records: Records, place: int, matched: str) -> None:
    records["duplicates"][place] = _link(_INPUT[1 + place], matched)


@pytest.mark.parametrize("name", _BROKEN)
def test_broken_promise_is_found_without_a_reference(name: str) -> None:
    """Lost, doubled, invented, altered or contradicting records are named, with their position."""
    change, kind, shown = _BROKEN[name]
    found = "\n".join(faults(_changed(change)))
    assert kind in found
    assert shown in found


def _with(records: Records, sent: Record) -> list[Record]:
    return [*records["unique"], _unique(sent)]


_OTHERWISE: dict[str, tuple[Change, str]] = {
    "another match": (
        lambda of: of["duplicates"].__setitem__(1, _link(_INPUT[3], "a")),
        "decided otherwise than without faults: 1",
    ),
    "another relation": (
        lambda of: of["duplicates"].__setitem__(0, _link(_INPUT[1], "a", "exact")),
        "decided otherwise than without faults: 1",
    ),
    "unique, not a copy": (
        lambda of: of.update(duplicates=[*of["duplicates"][:1], *of["duplicates"][2:]], unique=_with(of, _INPUT[3])),
        "decided otherwise than without faults: 1",
    ),
    "another fingerprint": (
        lambda of: of["unique"].__setitem__(1, _unique(_INPUT[5], fingerprint="2")),
        "decided otherwise than without faults: 1",
    ),
    "silent succession": (lambda of: of["duplicates"].pop(), "announcements that are missing: 1"),
    "succession twice": (lambda of: of["duplicates"].append(of["duplicates"][-1]), "announcements that are too many"),
    "another cluster": (
        lambda of: of["clusters"].append(Record("clusters", 3, b"b", b'{"copies": 2}', [])),
        "clusters that ended otherwise: 1",
    ),
    "a cluster too many": (
        lambda of: of["clusters"].append(Record("clusters", 3, b"x", b"{}", [])),
        "clusters that ended otherwise: 1",
    ),
}


@pytest.mark.parametrize("name", _OTHERWISE)
def test_other_decision_is_found_beside_a_reference(name: str) -> None:
    """A run that is valid by itself but differs from an undisturbed one is found by comparing the two."""
    change, shown = _OTHERWISE[name]
    outcome = _changed(change)
    assert faults(outcome) == []
    assert shown in "\n".join(faults(outcome, _outcome(_sound())))


def test_repeats_must_be_the_same() -> None:
    """With at-least-once delivery a record may recur, but only unchanged and on the same topic."""
    reference = _outcome(_sound())

    def again(records: Records) -> None:
        records["unique"] *= 2
        records["dead"] *= 2
        records["duplicates"].insert(0, _link(_INPUT[1], "a", decided_at="2026-11-19T00:00:00.000Z"))
        records["duplicates"].append(records["duplicates"][-1])

    def otherwise(records: Records) -> None:
        records["duplicates"].append(_link(_INPUT[1], "a", "exact"))

    def elsewhere(records: Records) -> None:
        records["unique"].append(_unique(_INPUT[1]))

    assert faults(_changed(again), reference, repeats=True) == []
    assert len(faults(_changed(again), reference)) == 2
    for change in (otherwise, elsewhere):
        assert "doubled" in "\n".join(faults(_changed(change), reference, repeats=True))


def test_unfinished_run_may_end_anywhere_but_has_no_hole() -> None:
    """In an unfinished run later messages may be missing, but none before one that came out."""
    reference = _outcome(_sound())

    def cut(records: Records) -> None:
        records["unique"].pop()
        del records["duplicates"][2:]

    def hole(records: Records) -> None:
        records["duplicates"].pop(0)

    assert faults_so_far(_changed(cut), reference) == []
    assert "skipped: messages that came out nowhere, while later ones did: 1\n  0@1" in "\n".join(
        faults_so_far(_changed(hole), reference)
    )


def test_many_faults_are_counted_and_some_named() -> None:
    """The first of many messages are named, and all are counted."""
    records: Records = {"in": [_sent(number) for number in range(1000)]}
    (told,) = faults(_outcome(records))
    assert told.startswith("lost: messages that came out nowhere: 1000\n  0@0\n  0@1\n")
    assert told.endswith("and 992 more")


def test_order_of_several_partitions_is_not_known() -> None:
    """With several partitions a named article may come later, but must exist at some point."""
    records = _sound()
    records["in"] = [*_INPUT, replace(_sent(6, "e"), partition=1, offset=0)]
    records["unique"].append(_unique(records["in"][-1]))
    records["duplicates"][0] = _link(_INPUT[1], "e")
    assert faults(_outcome(records)) == []
    records["duplicates"][0] = _link(_INPUT[1], "ghost")
    assert "names ghost" in "\n".join(faults(_outcome(records)))


def test_input_that_holds_messages_twice_is_refused() -> None:
    """A message written twice by the producer is the test's fault, not the service's."""
    records = _sound()
    records["in"].append(replace(_sent(0, "a"), offset=6))
    with pytest.raises(AssertionError, match="holds them twice"):
        _outcome(records)
