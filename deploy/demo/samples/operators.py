"""The edits that reposting sites make, each a pure function of a text, a generator and another text.

Knows what each edit does to a title and a body; nothing of messages, sites' addresses or time.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from opencc import OpenCC

from deploy.demo.samples.corpus import Form, phrases, sites

_SENTENCE = re.compile(r".+?(?:[。！？]+[”’」』）]*|[.!?]+[\"”]?\s+|$)")
_LAST_CLAUSE = re.compile(r"[，：；、,\s][^，：；、,\s]*$")
_HAN = re.compile(r"[一-鿿]")
_INVISIBLE = "\u200b\u200c\u2060\ufeff\u00ad"
_FULL_WIDTH_OFFSET = 0xFEE0
_ASCII = range(0x21, 0x7F)
_OTHER_WIDTH = {
    **{code: code + _FULL_WIDTH_OFFSET for code in _ASCII},
    **{code + _FULL_WIDTH_OFFSET: code for code in _ASCII},
}
_LEAD_CHARS = 28


@dataclass(frozen=True, slots=True)
class Text:
    """What an edit changes.

    Attributes:
        title: headline; empty for posts.
        body: paragraphs, separated by newlines.
    """

    title: str
    body: str


Operator = Callable[[Text, Random, Text], Text]


def verbatim(text: Text, _rng: Random, _other: Text) -> Text:
    """Copy title and body as they are."""
    return text


def boiler(text: Text, rng: Random, _other: Text) -> Text:
    """Put a line of source and editor before the body, and one or two lines of disclaimer after it."""
    book = _book(text)
    before = _filled(rng.choice(book["before"]), rng, text)
    after = [_filled(line, rng, text) for line in rng.sample(book["after"], rng.randint(1, 2))]
    return replace(text, body="\n".join([before, text.body, *after]))


def retitle(text: Text, rng: Random, _other: Text) -> Text:
    """Write another headline, from the old one or from the first sentence; leave the body alone."""
    pattern = rng.choice(_book(text)["headlines"])
    return replace(text, title=pattern.format(title=text.title, lead=_lead(text.body)))


def punctuation(text: Text, rng: Random, _other: Text) -> Text:
    """Write the punctuation marks in another house style."""
    style: dict[str, str] = rng.choice(phrases()["punctuation"])
    return Text(_mapped(text.title, style), _mapped(text.body, style))


def width(text: Text, _rng: Random, _other: Text) -> Text:
    """Write half-width letters, digits and marks in full width, and full-width ones in half width."""
    return Text(text.title.translate(_OTHER_WIDTH), text.body.translate(_OTHER_WIDTH))


def traditional(text: Text, _rng: Random, _other: Text) -> Text:
    """Write simplified characters as traditional ones."""
    converter = _to_traditional()
    return Text(converter.convert(text.title), converter.convert(text.body))


def dateline(text: Text, rng: Random, _other: Text) -> Text:
    """Put place, day and reporter in front of the first sentence."""
    pattern = rng.choice(_book(text)["datelines"])
    return replace(text, body=_filled(pattern, rng, text) + text.body)


def cut_sentences(text: Text, rng: Random, _other: Text) -> Text:
    """Drop 10 to 30 percent of the sentences, anywhere."""
    total = len(_sentences(text.body))
    dropped = set(rng.sample(range(total), max(1, int(total * rng.uniform(0.1, 0.3)))))
    numbers = iter(range(total))
    kept = (
        "".join(sentence for sentence in _sentences(paragraph) if next(numbers) not in dropped)
        for paragraph in text.body.split("\n")
    )
    return replace(text, body="\n".join(paragraph for paragraph in kept if paragraph))


def truncated_70(text: Text, rng: Random, _other: Text) -> Text:
    """Keep the first 70 percent of the body, with a "read more" mark."""
    return _truncated(text, 0.7, rng)


def truncated_50(text: Text, rng: Random, _other: Text) -> Text:
    """Keep the first half of the body, with a "read more" mark."""
    return _truncated(text, 0.5, rng)


def inserted_sentences(text: Text, rng: Random, other: Text) -> Text:
    """Put sentences of another article between this one's, 30 for each 100, and drop the paragraph breaks."""
    sentences = _sentences(text.body)
    foreign = _sentences(other.body)
    for sentence in rng.sample(foreign, min(len(foreign), max(1, int(len(sentences) * 0.3)))):
        sentences.insert(rng.randint(1, len(sentences)), sentence)
    return replace(text, body=_joined(sentences))


def shuffled_paragraphs(text: Text, rng: Random, _other: Text) -> Text:
    """Put the paragraphs in another order."""
    paragraphs = text.body.split("\n")
    start = rng.randint(1, len(paragraphs) - 1)
    rest = paragraphs[start:]
    rng.shuffle(rest)
    return replace(text, body="\n".join([*rest, *paragraphs[:start]]))


def replaced_characters(text: Text, rng: Random, _other: Text) -> Text:
    """Replace 2 to 8 percent of the Chinese characters, singly or in pairs, as misreading does."""
    characters = list(text.body)
    places = [place for place, character in enumerate(characters) if _HAN.match(character)]
    left = round(len(places) * rng.uniform(0.02, 0.08))
    while left > 0:
        run = min(left, rng.randint(1, 2))
        start = rng.randrange(len(places) - run)
        for place in places[start : start + run]:
            characters[place] = _misread(characters[place], rng)
        left -= run
    return replace(text, body="".join(characters))


def html_leftovers(text: Text, rng: Random, _other: Text) -> Text:
    """Leave the page's tags and entities in the body."""
    paragraphs = [html.escape(paragraph) for paragraph in text.body.split("\n")]
    marked = rng.randrange(len(paragraphs))
    paragraphs[marked] = f'<span style="color:#333">{paragraphs[marked]}</span>'
    paragraphs[-1] += '<br/><img src="/static/pixel.gif" alt=""/>'
    return replace(text, body="\n".join(f"<p>&nbsp;&nbsp;{paragraph}</p>" for paragraph in paragraphs))


def zero_width(text: Text, rng: Random, _other: Text) -> Text:
    """Scatter zero-width characters and soft hyphens over the body, after about one character in sixteen."""
    return replace(text, body=_scattered(text.body, _INVISIBLE, 1 / 16, rng))


def spaced(text: Text, rng: Random, _other: Text) -> Text:
    """Put spaces after about one character in six, as copying from a scan or a table does."""
    return replace(text, body=_scattered(text.body, " \u3000\u00a0", 1 / 6, rng))


def rewrapped(text: Text, rng: Random, _other: Text) -> Text:
    """Break the lines every 30 to 44 characters and drop the paragraph breaks, as forums and mail do."""
    columns = rng.randint(30, 44)
    flowing = _joined(text.body.split("\n"))
    return replace(text, body="\n".join(flowing[at : at + columns] for at in range(0, len(flowing), columns)))


def original_title(text: Text, rng: Random, other: Text) -> Text:
    """Write another headline, and put a line with the old one before the body."""
    line = _book(text)["original_title"].format(title=text.title)
    return replace(retitle(text, rng, other), body=f"{line}\n{text.body}")


def repost_chain(text: Text, rng: Random, _other: Text) -> Text:
    """Repost a microblog post: one to three comments, each with its author, before the original."""
    comments = rng.sample(phrases()["comments"], rng.randint(1, 3))
    users = rng.sample(phrases()["reposters"], len(comments))
    chain = "".join(f"{comment}//@{user}:" for comment, user in zip(comments, users, strict=True))
    return replace(text, body=chain + text.body)


def merged(text: Text, rng: Random, other: Text) -> Text:
    """Make a round-up: the article followed by the beginning of another, at most half as long."""
    second = ""
    for sentence in _sentences(other.body):
        if second and len(second) + len(sentence) > len(text.body) / 2:
            break
        second += sentence
    bridge = rng.choice(_book(text)["roundup"])
    return replace(text, body=f"{text.body}\n{bridge}{second.strip()}")


def mixture(text: Text, rng: Random, other: Text) -> Text:
    """Make three mild edits, in the order in which a site makes them: the frame comes last."""
    mild: tuple[Operator, ...] = (dateline, width, zero_width, original_title, retitle, boiler)
    if _form(text) is Form.NEWS:
        mild = (dateline, traditional, punctuation, *mild[1:])
    for step in sorted(rng.sample(range(len(mild)), 3)):
        text = mild[step](text, rng, other)
    return text


_FOR_ENGLISH: tuple[Operator, ...] = (
    verbatim,
    boiler,
    retitle,
    width,
    dateline,
    cut_sentences,
    truncated_70,
    truncated_50,
    inserted_sentences,
    shuffled_paragraphs,
    html_leftovers,
    zero_width,
    rewrapped,
    original_title,
    merged,
    mixture,
)
_FOR_POSTS: tuple[Operator, ...] = (
    verbatim,
    punctuation,
    width,
    traditional,
    zero_width,
    spaced,
    repost_chain,
)

OPERATORS: dict[Form, tuple[Operator, ...]] = {
    Form.NEWS: (*_FOR_ENGLISH, punctuation, traditional, replaced_characters, spaced),
    Form.POST: _FOR_POSTS,
    Form.ENGLISH: _FOR_ENGLISH,
}
"""The edits that make sense for texts of each form."""


def _truncated(text: Text, share: float, rng: Random) -> Text:
    mark = rng.choice(_book(text)["cut_marks"])
    return replace(text, body=text.body[: int(len(text.body) * share)] + mark)


def _sentences(body: str) -> list[str]:
    """Split a body into sentences, each with the marks and blanks that follow it."""
    return [sentence for paragraph in body.split("\n") for sentence in _SENTENCE.findall(paragraph)]


def _lead(body: str) -> str:
    """Return the first clauses of a body, as many as a headline can take."""
    sentence = _sentences(body)[0].strip()
    if len(sentence) > _LEAD_CHARS:
        sentence = _LAST_CLAUSE.sub("", sentence[:_LEAD_CHARS])
    return sentence.rstrip("，：；、。,. ")


def _joined(pieces: list[str]) -> str:
    """Join sentences or paragraphs, with a blank between two that meet in ASCII."""
    body = ""
    for piece in pieces:
        needs_blank = body and not body[-1].isspace() and body[-1].isascii() and piece[:1].isascii()
        body += f" {piece}" if needs_blank else piece
    return body


def _filled(pattern: str, rng: Random, text: Text) -> str:
    book = _book(text)
    name, other_name = rng.sample(book["names"], 2)
    return pattern.format(
        site=rng.choice(sites(_form(text))).name,
        city=rng.choice(book["cities"]),
        name=name,
        other_name=other_name,
        day=rng.randint(13, 15),
        hour=rng.randint(1, 9),
        minute=rng.randint(10, 59),
    )


def _mapped(text: str, style: dict[str, str]) -> str:
    for mark, other_mark in style.items():
        text = text.replace(mark, other_mark)
    return text


def _misread(character: str, rng: Random) -> str:
    likely = phrases()["confusions"].get(character)
    return str(likely or rng.choice(phrases()["common"].replace(character, "")))


def _scattered(text: str, intruders: str, share: float, rng: Random) -> str:
    return "".join(_with_intruder(text, intruders, share, rng))


def _with_intruder(text: str, intruders: str, share: float, rng: Random) -> Iterator[str]:
    for character in text:
        yield character
        if rng.random() < share:
            yield rng.choice(intruders)


def _form(text: Text) -> Form:
    return Form.NEWS if _HAN.search(text.body) else Form.ENGLISH


def _book(text: Text) -> dict[str, Any]:
    """Return the phrases in the language of a text, by their purpose."""
    book: dict[str, Any] = phrases()[_form(text)]
    return book


@cache
def _to_traditional() -> OpenCC:
    return OpenCC("s2t")
