"""The decoder reads scopes: from where, in which order, and which values are invalid."""

import json

import pytest

from stream_dedup.article import Article, Withdrawal
from stream_dedup.decode import Decoder, Header, Reason, UndecodableError
from stream_dedup.settings import InputSettings

_NOW = 1_792_324_800_000  # 2026-10-18T12:00:00Z
_BOTH = {"scope_header": "tenant", "fields": {"scope": "meta.channel"}}


def _message(channel: object = ..., **fields: object) -> bytes:
    meta = {} if channel is ... else {"meta": {"channel": channel}}
    return json.dumps({"id": "n-1", "body": "夜市昨晚重新开张。", **meta, **fields}).encode()


def _decoded(value: bytes | None, *headers: Header, **settings: object) -> Article | Withdrawal:
    decoder = Decoder(InputSettings.model_validate(settings))
    return decoder.decode(value, _NOW, key=b"n-1", headers=headers)


def _refused(value: bytes | None, *headers: Header, **settings: object) -> UndecodableError:
    with pytest.raises(UndecodableError) as raised:
        _decoded(value, *headers, **settings)
    return raised.value


@pytest.mark.parametrize(
    ("channel", "headers", "scope"),
    [
        (..., [], ""),
        (None, [], ""),
        ("财经", [], "财经"),
        (" 财经\n", [], "财经"),
        (7, [], "7"),
        (2**70, [], str(2**70)),
        ("长" * 85, [], "长" * 85),
        (..., [("tenant", "甲".encode())], "甲"),
        ("财经", [("tenant", b" a ")], "a"),
        ("财经", [("tenant", None)], "财经"),
        ("财经", [("tenant", b"")], "财经"),
        (..., [("tenant", b"a"), ("tenant", b"b")], "b"),
        (..., [("Tenant", b"a"), ("channel", b"b")], ""),
    ],
)
def test_header_goes_before_the_field(channel: object, headers: list[Header], scope: str) -> None:
    """The last header of that name is the scope, or the field if it is empty or missing; otherwise there is none."""
    assert _decoded(_message(channel), *headers, **_BOTH).scope == scope


def test_nothing_is_looked_for_unless_a_setting_says_so() -> None:
    """By default, headers and fields that look like scopes are ignored."""
    value = _message("财经", scope=["no scope"], **{"": "nor this"})
    assert _decoded(value, ("scope", b"a"), ("tenant", b"\xff"), ("", b"a")).scope == ""


def test_withdrawals_name_their_scope() -> None:
    """A tombstone's scope comes from its header, that of a message with the flag from header or field."""
    header = ("tenant", "甲".encode())
    assert _decoded(None, header, **_BOTH) == Withdrawal("n-1", scope="甲")
    assert _decoded(None, **_BOTH) == Withdrawal("n-1")
    assert _decoded(_message("财经", deleted=True), **_BOTH) == Withdrawal("n-1", scope="财经")
    assert _decoded(_message("财经", deleted=True), header, **_BOTH) == Withdrawal("n-1", scope="甲")


@pytest.mark.parametrize(
    ("channel", "headers", "reason", "said"),
    [
        (["财经"], [], Reason.WRONG_TYPE, "meta.channel is an array, not a string or an integer"),
        (True, [], Reason.WRONG_TYPE, "meta.channel is a boolean, not a string or an integer"),
        (1.5, [], Reason.WRONG_TYPE, "meta.channel is a number, not a string or an integer"),
        ("长" * 86, [], Reason.INVALID_SCOPE, "the scope has 258 bytes, at most 256"),
        ("a\x1fb", [], Reason.INVALID_SCOPE, "the scope contains U+001F, which separates scope and id"),
        ("a\x1f", [], Reason.INVALID_SCOPE, "the scope contains U+001F, which separates scope and id"),
        (..., [("tenant", b"\x1f")], Reason.INVALID_SCOPE, "the scope contains U+001F, which separates"),
        ("\ud83d", [], Reason.INVALID_SCOPE, "the scope contains half a surrogate pair"),
        (..., [("tenant", b"\xff")], Reason.INVALID_SCOPE, "the header tenant is not valid UTF-8"),
        (..., [("tenant", b"a" * 257)], Reason.INVALID_SCOPE, "the scope has 257 bytes, at most 256"),
        (..., [("tenant", b"a\x1fb")], Reason.INVALID_SCOPE, "the scope contains U+001F, which separates"),
    ],
)
@pytest.mark.parametrize("deleted", [False, True])
def test_what_is_no_scope_has_its_reason(
    channel: object,
    headers: list[Header],
    reason: Reason,
    said: str,
    deleted: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """A scope of the wrong type or length makes a dead letter that says why, whatever else the message holds."""
    error = _refused(_message(channel, deleted=deleted), *headers, **_BOTH)
    assert error.reason is reason
    assert said in str(error)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"scope_header": "tenant"}, "no scope in the header tenant"),
        ({"fields": {"scope": "meta.channel"}}, "no scope in the field meta.channel"),
        (_BOTH, "no scope in the header tenant or the field meta.channel"),
    ],
)
@pytest.mark.parametrize("value", [_message(), _message(""), _message(" "), _message(deleted=True), None])
def test_missing_scope_can_be_a_dead_letter(settings: dict[str, object], said: str, value: bytes | None) -> None:
    """If `scope_missing` is `dead`, articles and withdrawals without a scope have a reason of their own."""
    error = _refused(value, scope_missing="dead", **settings)
    assert (error.reason, str(error)) == (Reason.MISSING_SCOPE, said)
