"""The decoder gives a reason for every invalid message, and accepts everything else as an article."""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_dedup.article import Article, Origin, Withdrawal
from stream_dedup.decode import Decoder, Reason, UndecodableError
from stream_dedup.settings import InputSettings
from stream_dedup.text.normal import Normaliser

_NOW = 1_792_324_800_000  # 2026-10-18T12:00:00Z
_DAY = 86_400_000
_ORIGIN = Origin("articles.in", 3, 91, _NOW)
_URL_NAME = "url:" + hashlib.blake2b(b"https://shiqiao.example/1.html", digest_size=16).hexdigest()
_WHOLE = {
    "id": "n-1",
    "title": "夜市重开",
    "body": "三十多个摊位沿河排开。",
    "url": "https://shiqiao.example/1.html",
    "source": "石桥网",
    "published_at": "2026-10-18T20:00:00+08:00",
}
_PIECES = (
    *("<p>", "</p>", "<br/>", "<script>", "</script>", "<style ", "<!--", "-->", "<", ">", "a", "市", ' x="', "/"),
    *("&lt;", "&gt;", "&nbsp;", "&amp;", "&", "lt;", "p", "script", " ", "\u200b", "\u3164", "\u115f", "😀", "_"),
)
_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def _decoder(**settings: object) -> Decoder:
    return Decoder(InputSettings.model_validate(settings))


def _message(**changes: object) -> bytes:
    fields = {name: value for name, value in {**_WHOLE, **changes}.items() if value is not ...}
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _escaped(**changes: object) -> bytes:
    return json.dumps({**_WHOLE, **changes}).encode()


def _article(decoder: Decoder, value: bytes) -> Article:
    decoded = decoder.decode(value, _NOW)
    assert isinstance(decoded, Article)
    return decoded


def _decoded(**changes: object) -> Article:
    return _article(_decoder(), _message(**changes))


def _withdrawn(**changes: object) -> Article | Withdrawal:
    return _decoder().decode(_message(deleted=True, **changes), _NOW, _ORIGIN)


def _published(moment: object, **settings: object) -> int | None:
    return _article(_decoder(**settings), _message(published_at=moment)).published_ms


def _reason(value: bytes | None, **settings: object) -> Reason:
    with pytest.raises(UndecodableError) as raised:
        _decoder(**settings).decode(value, _NOW)
    assert str(raised.value)
    return raised.value.reason


def test_whole_message_is_an_article() -> None:
    """The article has every field of the message, and its origin."""
    assert _decoder().decode(_message(), _NOW, _ORIGIN) == Article(
        id="n-1",
        body="三十多个摊位沿河排开。",
        title="夜市重开",
        url="https://shiqiao.example/1.html",
        source="石桥网",
        published_ms=_NOW,
        origin=_ORIGIN,
    )


def test_body_alone_is_enough() -> None:
    """Title, URL, source, time and id may be missing or null."""
    missing = dict.fromkeys(("id", "title", "url", "source", "published_at"), ...)
    for absent in (missing, dict.fromkeys(missing)):
        article = _decoded(**absent)
        assert (article.title, article.url, article.source, article.published_ms) == ("", "", "", None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.NULL_VALUE),
        (b"x" * (8 << 20) + b"x", Reason.TOO_LARGE),
        (_message(body="长" * 1_000_001), Reason.TOO_LARGE),
        (_message(title="长" * 2_001), Reason.TOO_LARGE),
        (_message().decode().encode("gbk"), Reason.INVALID_UTF8),
        (b"", Reason.INVALID_JSON),
        (_message()[:60], Reason.INVALID_JSON),
        (b'{"body": "a" "id": 1}', Reason.INVALID_JSON),
        (b'{"body": "a", "score": NaN}', Reason.INVALID_JSON),
        (b'{"body": "a", "score": -Infinity}', Reason.INVALID_JSON),
        (b'{"body": "a", "deep": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", Reason.INVALID_JSON),
        (b"[" + _message() + b"]", Reason.NOT_AN_OBJECT),
        (b'"text"', Reason.NOT_AN_OBJECT),
        (b"null", Reason.NOT_AN_OBJECT),
        (b"12", Reason.NOT_AN_OBJECT),
        (_message(body=...), Reason.MISSING_FIELD),
        (_message(body=None), Reason.MISSING_FIELD),
        (_message(body=20261018), Reason.WRONG_TYPE),
        (_message(body=["a"]), Reason.WRONG_TYPE),
        (_message(title={"a": 1}), Reason.WRONG_TYPE),
        (_message(url=7), Reason.WRONG_TYPE),
        (_message(source=True), Reason.WRONG_TYPE),
        (_message(body=""), Reason.EMPTY_BODY),
        (_message(body=" \n\t\u3000\u00a0"), Reason.EMPTY_BODY),
        (_message(id={"site": 3}), Reason.WRONG_TYPE),
        (_message(id=["a"]), Reason.WRONG_TYPE),
        (_message(id=True), Reason.WRONG_TYPE),
        (_message(id=1.5), Reason.WRONG_TYPE),
        (_message(id="长" * 171), Reason.INVALID_ID),
        (_message(id="a\x1fb"), Reason.INVALID_ID),
        (_message(id="a\x1f"), Reason.INVALID_ID),
        (_escaped(id="a\ud83d"), Reason.INVALID_ID),
        (_message(published_at="前天晚上"), Reason.INVALID_TIME),
        (_message(published_at="2026-13-01"), Reason.INVALID_TIME),
        (_message(published_at="2026/2/30"), Reason.INVALID_TIME),
        (_message(published_at="2026年1月5日 25:00"), Reason.INVALID_TIME),
        (_message(published_at="2026-1-158:30"), Reason.INVALID_TIME),  # the 15th or the 1st
        (_message(published_at="10/18/2026"), Reason.INVALID_TIME),  # or in another country 18/10/2026
        (_message(published_at="1月5日 8:30"), Reason.INVALID_TIME),
        (_message(published_at="Sun, 18 Oct 2026 20:00:00 CST"), Reason.INVALID_TIME),  # China's, or America's
        (_message(published_at="Sun, 18 Brumaire 2026 20:00:00"), Reason.INVALID_TIME),
        (_message(published_at="1500-01-01T00:00:00Z"), Reason.INVALID_TIME),
        (_message(published_at="1899-12-31T23:59:59.999Z"), Reason.INVALID_TIME),
        (_message(published_at="0001-01-01T00:00:00+14:00"), Reason.INVALID_TIME),
        (_message(published_at=-3_000_000_000), Reason.INVALID_TIME),
        (_message(published_at="inf"), Reason.INVALID_TIME),
        (_message(published_at="nan"), Reason.INVALID_TIME),
        (_message(published_at="1_792_324_800"), Reason.INVALID_TIME),
        (_message(published_at="_" * 200_000 + "\n_"), Reason.INVALID_TIME),  # in no time: a match took hours
        (_message(published_at="２０２６１０１８"), Reason.INVALID_TIME),
        (_message(published_at=1e300), Reason.INVALID_TIME),
        (_message(published_at=True), Reason.WRONG_TYPE),
        (_message(published_at=[2026, 10, 18]), Reason.WRONG_TYPE),
        (_message(deleted="true"), Reason.WRONG_TYPE),
        (_message(deleted=1), Reason.WRONG_TYPE),
        (_message(deleted=[True]), Reason.WRONG_TYPE),
        (_message(deleted={}), Reason.WRONG_TYPE),
        (_message(deleted=True, id=..., url=...), Reason.MISSING_FIELD),
        (_message(deleted=True, id=" ", url=""), Reason.MISSING_FIELD),
        (_message(deleted=True, id=..., url=" \n"), Reason.MISSING_FIELD),
        (_message(deleted=True, id=1.5), Reason.WRONG_TYPE),
        (_message(deleted=True, id="长" * 171), Reason.INVALID_ID),
        (_escaped(deleted=True, id="a\ud83d"), Reason.INVALID_ID),
        (_message(deleted=True, url=7), Reason.WRONG_TYPE),
        (_message(published_at=_NOW + _DAY + 1), Reason.FUTURE_TIME),
        (_message(published_at="2099-01-01"), Reason.FUTURE_TIME),
        (_message(published_at="9999-12-31T23:59:59Z"), Reason.FUTURE_TIME),
    ],
)
def test_message_that_is_no_article_has_its_reason(value: bytes | None, reason: Reason) -> None:
    """Each kind of fault has its own reason."""
    assert _reason(value) is reason


def test_every_reason_occurs() -> None:
    """The cases above cover every reason except those of scopes and other formats, and those given elsewhere."""
    marks = test_message_that_is_no_article_has_its_reason.pytestmark  # type: ignore[attr-defined]
    elsewhere = {Reason.INVALID_HEADERS, Reason.INTERNAL, Reason.UNKNOWN_ARTICLE, Reason.TOO_LATE}
    of_scopes = {Reason.INVALID_SCOPE, Reason.MISSING_SCOPE}
    of_formats = {Reason.INVALID_FRAME, Reason.UNKNOWN_SCHEMA, Reason.INVALID_RECORD, Reason.INVALID_EVENT}
    assert {reason for _, reason in marks[0].args[1]} == set(Reason) - elsewhere - of_scopes - of_formats


def test_bounds_are_settings() -> None:
    """Message, body, title and id may be exactly as large as the settings allow."""
    bounds = {"max_message_bytes": 2048, "max_body_chars": 100, "max_title_chars": 5, "max_id_bytes": 16}
    decoder = _decoder(**bounds)
    article = _article(decoder, _message(body="长" * 100, title="五个字标题", id="a" * 16))
    assert (len(article.body), len(article.title), len(article.id)) == (100, 5, 16)
    assert _reason(_message(body="长" * 101), **bounds) is Reason.TOO_LARGE
    assert _reason(_message(title="六个字的标题"), **bounds) is Reason.TOO_LARGE
    assert _reason(_message(id="a" * 17), **bounds) is Reason.INVALID_ID
    padded = _message(filler="").replace(b'"filler": ""', b'"filler": "' + b"a" * 2048 + b'"')
    assert _reason(padded, **bounds) is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("bounds", "value", "detail"),
    [
        ({"max_message_bytes": 1024}, b"x" * 1025, "the message has 1025 bytes: input.max_message_bytes = 1024"),
        ({"max_body_chars": 100}, _message(body="长" * 101), "the body has 101 characters: input.max_body_chars = 100"),
        (
            {"max_title_chars": 5},
            _message(title="六个字的标题"),
            "the title has 6 characters: input.max_title_chars = 5",
        ),
        ({"max_id_bytes": 16}, _message(id="a" * 17), "the id has 17 bytes: input.max_id_bytes = 16"),
    ],
)
def test_what_is_too_large_is_told_with_its_setting(bounds: dict[str, int], value: bytes, detail: str) -> None:
    """A dead letter names the thing, its size, and the setting with the limit."""
    with pytest.raises(UndecodableError, match=f"^{detail} is the limit$"):
        _decoder(**bounds).decode(value, _NOW)


def test_bound_of_the_outputs_is_kept_where_it_is_tighter() -> None:
    """A message too large for the output topics is refused even if the settings would allow it."""
    value = _message()
    assert Decoder(InputSettings(), len(value)).decode(value, _NOW).id == "n-1"
    with pytest.raises(UndecodableError, match="takes"):
        Decoder(InputSettings(), len(value) - 1).decode(value, _NOW)


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join))
@example("\u3164")
@example("\u200b<p></p>")
@example("<p><!--a--></p>")
def test_body_is_empty_if_nothing_of_it_shows(body: str) -> None:
    """Its normal form has only whitespace, wherever markup and invisible characters are in it."""
    shows = Normaliser()(body).strip() != ""
    value = _message(body=body)
    assert _article(_decoder(), value).body == body if shows else _reason(value) is Reason.EMPTY_BODY


def test_body_of_one_letter_is_empty_if_normalising_leaves_nothing_of_it() -> None:
    """So it is of all letters and digits that Unicode has, fillers among them."""
    letters = [letter for letter in map(chr, range(sys.maxunicode + 1)) if letter.isalnum()]
    normal, decoder = Normaliser().all(letters), _decoder()
    for place, letter in enumerate(letters):
        try:
            decoder.article({"body": letter}, _NOW)
            shows = True
        except UndecodableError:
            shows = False
        assert shows == (normal.text(place).strip() != ""), hex(ord(letter))


@pytest.mark.parametrize(
    ("given_id", "name"),
    [("a", "a"), (17, "17"), (0, "0"), (-3, "-3"), (2**63, str(2**63)), ("  a b ", "a b"), ("新闻👍", "新闻👍")],
)
def test_id_is_a_string_or_an_integer(given_id: object, name: str) -> None:
    """Integers are converted to text; whitespace around a string is removed."""
    assert _decoded(id=given_id).id == name


def test_id_beyond_64_bits_is_an_integer_too() -> None:
    """An integer id of, say, 128 bits is converted in full."""
    assert _decoded(id=2**100).id == str(2**100)


@pytest.mark.parametrize("absent", [..., None, "", "  ", "\u3000"])
def test_article_without_id_is_named_by_its_url(absent: object) -> None:
    """The id is the 16-byte BLAKE2b digest of the URL, the same in every run."""
    assert _decoded(id=absent).id == _URL_NAME


def test_blanks_around_a_url_are_no_part_of_it() -> None:
    """And a blank one is none: articles that share it have nothing in common."""
    assert _decoded(url=" https://shiqiao.example/1.html\n").url == "https://shiqiao.example/1.html"
    assert _decoded(url="\n ").url == ""
    assert _decoded(id=..., url=" ").id.startswith("content:")


def test_article_without_id_and_url_is_named_by_its_content() -> None:
    """The id is the digest of source, title and body; another body gives another id."""
    content = f"{_WHOLE['source']}\n{_WHOLE['title']}\n{_WHOLE['body']}".encode()
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    assert _decoded(id=..., url=...).id == f"content:{digest}"
    assert _decoded(id=..., url=..., body="另一篇").id != f"content:{digest}"


@pytest.mark.parametrize(
    "moment",
    [
        "2026-10-18T20:00:00+08:00",
        "2026-10-18T12:00:00Z",
        "2026-10-18t12:00:00z",
        "2026-10-18 20:00:00",
        "2026-10-18T20:00",
        " 2026-10-18T12:00:00.000Z ",
        "20261018T200000",
        "20261018_200000",
        "20261018_2000",
        _NOW // 1000,
        _NOW,
        _NOW / 1000,
        str(_NOW // 1000),
        str(_NOW),
        f"{_NOW / 1000:.3f}",
        "2026/10/18 20:00",
        "2026.10.18 20:00:00",
        "2026-10-18 20:00:00 +0800",
        "2026-10-18 12:00:00.000 Z",
        "2026年10月18日 20:00",
        "2026年10月18日20时00分",
        "2026 年 10 月 18 日 20时0分0秒",
        "2026-10-18 20：00：00",
        "Sun, 18 Oct 2026 20:00:00 +0800",
        "Sun, 18 Oct 2026 12:00:00 GMT",
        "Sun, 18 Oct 2026 12:00:00 -0000",
        "18 oct 2026 20:00",
    ],
)
def test_one_moment_in_every_form(moment: object) -> None:
    """ISO 8601, the forms of Chinese sites and of RSS, seconds and milliseconds give the same time."""
    assert _published(moment) == _NOW


def test_earliest_time_is_the_beginning_of_1900() -> None:
    """In UTC; that of a millisecond before is an error."""
    since_1900 = datetime(1970, 1, 1, tzinfo=UTC) - datetime(1900, 1, 1, tzinfo=UTC)
    assert _published("1900-01-01T00:00:00Z") == -since_1900 // timedelta(milliseconds=1)


def test_time_without_offset_is_in_the_zone_of_the_settings() -> None:
    """The setting utc_offset applies to naive times and dates, and to no others."""
    assert _published("2026-10-18 12:00:00", utc_offset="+00:00") == _NOW
    assert _published("2026-10-18 06:30:00", utc_offset="-05:30") == _NOW
    assert _published("2026-10-18", utc_offset="+12:00") == _NOW - _DAY
    assert _published("2026-10-18T12:00:00Z", utc_offset="-05:30") == _NOW


def test_basic_iso_date_is_a_date() -> None:
    """`20261018` is 18 October 2026, not a second of 1970."""
    assert _published("20261018") == _published("2026-10-18")


@pytest.mark.parametrize("written", ["2026/1/5", "2026-1-5", "2026.1.5", "2026年1月5日", "2026年01月05日"])
def test_date_with_single_digits_is_a_date(written: str) -> None:
    """Month and day need no leading zero; a time of day with a single digit of hours may follow."""
    assert _published(written) == _published("2026-01-05")
    assert _published(f"{written} 8:05") == _published("2026-01-05T08:05")


@pytest.mark.parametrize(
    "written", ["2026/10/18 20:00:00.25", "2026-10-18T12:00:00.25Z", "2026年10月18日 20:00:00.250"]
)
def test_parts_of_a_second_are_kept(written: str) -> None:
    """In the forms of sites too: the newest of two articles is told by them."""
    assert _published(written) == _NOW + 250


def test_numbers_before_1970_are_negative() -> None:
    """Seconds and milliseconds are told apart by their size, as those of today are."""
    assert _published(-1_000_000_000) == _published(-1_000_000_000_000) == -1_000_000_000_000


def test_any_other_digits_are_a_number() -> None:
    """Twelve digits in a string are milliseconds, as the number would be, and not a date with a time of day."""
    assert _published("202610182000") == _published(202610182000) == 202610182000


@pytest.mark.parametrize("absent", [..., None, "", " ", "\u3000\n"])
def test_article_without_time_is_an_article(absent: object) -> None:
    """A publication time that is missing, null, empty or blank is unknown."""
    assert _published(absent) is None


def test_time_may_be_ahead_by_what_the_settings_allow() -> None:
    """The limit is a day by default, measured against the clock."""
    assert _published(_NOW + _DAY) == _NOW + _DAY
    assert _reason(_message(published_at=_NOW + 1001), max_future_seconds=1) is Reason.FUTURE_TIME


@pytest.mark.parametrize("wild", [_NOW + _DAY + 1, 1000 * _NOW, 2**63 - 1, -(2**62)])
@pytest.mark.parametrize("value", [_message(published_at=...), None], ids=["article", "withdrawal"])
def test_timestamp_that_no_message_can_have_is_none(value: bytes | None, wild: int) -> None:
    """Otherwise the stream time would jump there, and everything remembered would expire."""
    for timestamp, told in ((wild, None), (_NOW + _DAY, _NOW + _DAY), (_NOW, _NOW)):
        item = _decoder().decode(value, _NOW, replace(_ORIGIN, timestamp_ms=timestamp), key=b"n-1")
        assert item.origin == replace(_ORIGIN, timestamp_ms=told)


def test_milliseconds_before_1973_are_taken_for_seconds_of_the_future() -> None:
    """Numbers under 10^11 are seconds, so milliseconds of 1972 would lie in the future and are refused."""
    assert _reason(_message(published_at=99_999_999_999)) is Reason.FUTURE_TIME
    assert _published(100_000_000_000) == 100_000_000_000


def test_fields_stand_at_dotted_paths() -> None:
    """The settings say where each field is, however deep."""
    fields = {"id": "meta.id", "body": "doc.text.plain", "published_at": "meta.time"}
    value = json.dumps({"meta": {"id": 5, "time": _NOW}, "doc": {"text": {"plain": "正文"}}}).encode()
    article = _article(_decoder(fields=fields), value)
    assert (article.id, article.body, article.published_ms) == ("5", "正文", _NOW)


@pytest.mark.parametrize("moment", [True, "yesterday", "1500-01-01", "2099-01-01"])
def test_error_about_a_time_names_its_path(moment: object) -> None:
    """Whatever is wrong with it, the error names the path that the settings give, as of any other field."""
    with pytest.raises(UndecodableError, match=r"^meta\.time "):
        _decoder(fields={"published_at": "meta.time"}).decode(_message(meta={"time": moment}), _NOW)


@pytest.mark.parametrize("document", [{}, {"doc": None}, {"doc": "正文"}, {"doc": ["正文"]}, {"doc": {"text": None}}])
def test_path_that_leads_nowhere_is_a_missing_field(document: dict[str, object]) -> None:
    """Whatever is found where the path should continue, the body is missing, and the error names the path."""
    with pytest.raises(UndecodableError, match=r"doc\.text") as raised:
        _decoder(fields={"body": "doc.text"}).decode(json.dumps(document).encode(), _NOW)
    assert raised.value.reason is Reason.MISSING_FIELD


@pytest.mark.parametrize("name", ["body", "title", "url", "source", "unknown"])
def test_half_of_an_emoji_does_not_cost_the_article(name: str) -> None:
    """Crawlers cut texts in the middle of surrogate pairs; a lone surrogate is accepted everywhere but in the id."""
    article = _article(_decoder(), _escaped(**{name: "正文\ud83d"}))
    assert article.id == "n-1"
    (article.url + article.source).encode()


def test_article_with_half_of_an_emoji_and_no_id_is_named() -> None:
    """Ids derived from URL and content can be computed despite lone surrogates."""
    assert _decoder().decode(_escaped(id=None, url="u\ud83d"), _NOW).id.startswith("url:")
    assert _decoder().decode(_escaped(id=None, url=None, body="\ud83d正文"), _NOW).id.startswith("content:")


@pytest.mark.parametrize("digits", [25, 400, 4000])
def test_huge_integer_in_an_unknown_field_does_not_cost_the_article(digits: int) -> None:
    """Fields that are not read may hold integers of any size."""
    value = _message(unknown=0).replace(b'"unknown": 0', b'"unknown": ' + b"9" * digits)
    assert _decoder().decode(value, _NOW).id == "n-1"


def test_integer_of_5000_digits_in_an_unknown_field_does_not_cost_the_article() -> None:
    """The same holds beyond the number of digits that Python converts to an integer."""
    value = _message(unknown=0).replace(b'"unknown": 0', b'"unknown": ' + b"9" * 5000)
    assert _decoder().decode(value, _NOW).id == "n-1"


@pytest.mark.parametrize("digits", [310, 400, 5000])
def test_huge_time_is_no_crash(digits: int) -> None:
    """A time of hundreds of digits is refused like any other invalid time."""
    value = _message(published_at=0).replace(b'"published_at": 0', b'"published_at": ' + b"9" * digits)
    assert _reason(value) in {Reason.INVALID_TIME, Reason.WRONG_TYPE, Reason.INVALID_JSON}


def test_byte_order_mark_does_not_cost_the_article() -> None:
    """Windows editors put one before the first line of a file, which then is the first message."""
    assert _decoder().decode(b"\xef\xbb\xbf" + _message(), _NOW) == _decoded()


def test_nested_json_of_usual_depth_is_read() -> None:
    """Fields that are not read may be nested a few hundred levels deep."""
    value = _message(unknown=0).replace(b'"unknown": 0', b'"unknown": ' + b"[" * 500 + b"]" * 500)
    assert _decoder().decode(value, _NOW).id == "n-1"


@pytest.mark.parametrize(
    ("key", "name"),
    [(b"n-1", "n-1"), (b" n 1\n", "n 1"), ("新闻👍".encode(), "新闻👍"), (b"17", "17"), (b"a" * 512, "a" * 512)],
)
def test_message_without_value_withdraws_the_article_of_its_key(key: bytes, name: str) -> None:
    """The key is the id, without surrounding whitespace."""
    assert _decoder().decode(None, _NOW, _ORIGIN, key=key) == Withdrawal(name, origin=_ORIGIN)


@pytest.mark.parametrize("key", [None, b"", b" \n", "\u3000".encode(), b"\xff\xfe", "新闻".encode("gbk"), b"a" * 513])
def test_message_without_value_and_id_says_what_is_needed(key: bytes | None) -> None:
    """Without a key that is a valid id, such a message is a dead letter, and the detail says which key is needed."""
    with pytest.raises(UndecodableError, match="its key must be the article's id, 1 to 512 bytes of UTF-8") as raised:
        _decoder().decode(None, _NOW, key=key)
    assert raised.value.reason is Reason.NULL_VALUE


def test_key_may_be_as_long_as_an_id() -> None:
    """The limit is that of ids, `input.max_id_bytes`, after whitespace is removed."""
    assert _decoder(max_id_bytes=16).decode(None, _NOW, key=b" " + b"a" * 16 + b" ") == Withdrawal("a" * 16)
    with pytest.raises(UndecodableError, match="1 to 16 bytes"):
        _decoder(max_id_bytes=16).decode(None, _NOW, key=b"a" * 17)


def test_key_of_a_message_with_a_value_says_nothing() -> None:
    """Only the value names an article or a withdrawal."""
    assert _decoder().decode(_message(), _NOW, key=b"other").id == "n-1"
    assert _decoder().decode(_message(deleted=True), _NOW, key=b"other").id == "n-1"
    with pytest.raises(UndecodableError, match="no id and no url"):
        _decoder().decode(b'{"deleted": true}', _NOW, key=b"n-1")


def test_flag_withdraws_the_article_of_the_id() -> None:
    """A message whose flag is true is a withdrawal and keeps its URL; its other fields are ignored."""
    whole = Withdrawal("n-1", "https://shiqiao.example/1.html", _ORIGIN)
    assert _withdrawn() == whole
    assert _withdrawn(title=..., body=..., source=..., published_at=...) == whole
    assert _withdrawn(title=7, body=" ", source=[], published_at="2099-01-01") == whole
    assert _withdrawn(url=...) == Withdrawal("n-1", "", _ORIGIN)


@pytest.mark.parametrize(("given_id", "name"), [(17, "17"), (2**100, str(2**100)), ("  a b ", "a b")])
def test_id_of_a_withdrawal_is_read_like_an_articles(given_id: object, name: str) -> None:
    """Integers of any size are converted to text; whitespace around a string is removed."""
    assert _withdrawn(id=given_id) == Withdrawal(name, "https://shiqiao.example/1.html", _ORIGIN)


@pytest.mark.parametrize(
    "url", ["https://shiqiao.example/1.html", "https://shiqiao.example/" + "长" * 3_000, "u\ud83d"]
)
def test_withdrawal_without_id_has_the_name_and_url_of_the_article(url: str) -> None:
    """The same URL gives an article and its withdrawal the same id and URL, even if it is truncated."""
    article = _article(_decoder(), _escaped(id=None, url=url))
    withdrawal = _decoder().decode(_escaped(id=None, url=url, body=None, deleted=True), _NOW)
    assert withdrawal == Withdrawal(article.id, article.url)
    assert _withdrawn(id=" ").id == _URL_NAME


@pytest.mark.parametrize("field", ["url", "source"])
def test_links_repeat_no_more_than_2000_characters_of_a_name(field: str) -> None:
    """Some URLs contain a whole picture; what derives from them, such as an id, does so from the whole."""
    long, longer = ("x" * count for count in (2_000, 2_001))
    assert getattr(_decoded(**{field: long}), field) == long
    assert getattr(_decoded(**{field: longer}), field) == long
    assert _decoded(id=..., url=long).id != _decoded(id=..., url=longer).id
    withdrawal = _withdrawn(url=longer)
    assert isinstance(withdrawal, Withdrawal)
    assert withdrawal.url == long


@pytest.mark.parametrize("absent", [False, None, ...])
def test_flag_that_is_not_true_leaves_an_article(absent: object) -> None:
    """A flag that is false, null or missing has no effect."""
    assert _decoded(deleted=absent) == _decoded()


def test_flag_stands_at_a_dotted_path() -> None:
    """The settings say where the flag is; the default field is then like any other."""
    decoder = _decoder(fields={"deleted": "meta.gone", "id": "meta.id"})
    assert decoder.decode(b'{"meta": {"gone": true, "id": 5}}', _NOW) == Withdrawal("5")
    assert _article(decoder, _message(deleted="yes", meta={"gone": False, "id": 5})).id == "5"
    with pytest.raises(UndecodableError, match=r"meta\.gone is a number"):
        decoder.decode(_message(meta={"gone": 0}), _NOW)


def test_withdrawal_without_name_says_which_fields_are_missing() -> None:
    """The detail gives the paths of id and URL."""
    with pytest.raises(UndecodableError, match=r"no meta\.id and no url") as raised:
        _decoder(fields={"id": "meta.id"}).decode(b'{"deleted": true, "id": 5}', _NOW)
    assert raised.value.reason is Reason.MISSING_FIELD


@pytest.fixture(scope="module")
def outcome() -> Callable[[bytes], Article | Withdrawal | Reason]:
    """Return what a message decodes to: an article, a withdrawal or a reason."""
    decoder = _decoder()

    def decode(value: bytes) -> Article | Withdrawal | Reason:
        try:
            return decoder.decode(value, _NOW)
        except UndecodableError as error:
            return error.reason

    return decode


@given(st.binary(max_size=60))
def test_any_bytes_are_an_article_or_have_a_reason(
    outcome: Callable[[bytes], Article | Withdrawal | Reason], value: bytes
) -> None:
    """No bytes make the decoder fail in any other way."""
    assert isinstance(outcome(value), (Article, Withdrawal, Reason))


@given(fields=st.fixed_dictionaries({}, optional=dict.fromkeys([*_WHOLE, "deleted", "x"], _JSON_VALUES)))
def test_any_object_is_an_article_or_has_a_reason(
    outcome: Callable[[bytes], Article | Withdrawal | Reason], fields: dict[str, object]
) -> None:
    """Whatever types the fields have, the result is an article, a withdrawal or a reason."""
    assert isinstance(outcome(json.dumps(fields).encode()), (Article, Withdrawal, Reason))
