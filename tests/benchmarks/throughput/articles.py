"""The articles that a benchmark runs over: from a file, or made from the demo's samples.

Knows lines of JSON and the settings' field names; knows nothing of what is timed.
"""

import gzip
import random
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

import orjson

from deploy.demo.samples.walks import Walks
from stream_dedup import Article
from stream_dedup.decode import Decoder, UndecodableError
from stream_dedup.settings import InputSettings

SCOPE = "scope"  # the field of the scope, in articles that have none of their own
_REPOSTS = 0.4


def read_articles(path: Path) -> list[bytes]:
    """Return the lines of a JSONL file, plain or .gz, without blank ones."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        return [line.rstrip(b"\r\n") for line in lines if line.strip()]


def add_article_options(parser: ArgumentParser, count: int) -> None:
    """Add the options that choose a benchmark's articles.

    Args:
        parser: parser of its command line.
        count: default number of samples.
    """
    parser.add_argument("--articles", type=Path, help="JSONL, plain or .gz, with id, title, body; by default samples")
    parser.add_argument("--count", type=int, default=count, help="number of samples, without --articles (%(default)s)")


def chosen_articles(options: Namespace) -> list[bytes]:
    """Return the articles that the options of `add_article_options` choose."""
    return read_articles(options.articles) if options.articles else sample_articles(options.count)


def write_articles(path: Path, articles: Iterable[bytes]) -> Path:
    """Write articles, one per line, and return the path."""
    path.write_bytes(b"".join(article + b"\n" for article in articles))
    return path


def decoded(articles: Iterable[bytes], settings: InputSettings) -> list[Article]:
    """Return the articles that the service would judge, without those that it would treat as dead letters."""
    decoder, now_ms = Decoder(settings), time.time_ns() // 1_000_000
    found = []
    for value in articles:
        try:
            item = decoder.decode(value, now_ms)
        except UndecodableError:
            continue
        if isinstance(item, Article):
            found.append(item)
    return found


def with_field(article: bytes, path: str, text: str) -> bytes:
    """Return an article with another text in a field.

    Args:
        article: the article as JSON.
        path: dotted path of the field.
        text: the new text.
    """
    fields = orjson.loads(article)
    *outer, last = path.split(".")
    inner = fields
    for part in outer:
        inner = inner.setdefault(part, {})
    inner[last] = text
    return orjson.dumps(fields)


def endless(articles: Sequence[bytes], scope_path: str) -> Iterator[bytes]:
    """Yield articles again and again, each time in another scope: each time the same ones are copies.

    Args:
        articles: the articles as JSON, at least one; the first time they are yielded as they are.
        scope_path: dotted path of the scope.
    """
    yield from articles
    for turn in count(1):
        for article in articles:
            yield with_field(article, scope_path, str(turn))


def sample_articles(count: int, seed: int = 7) -> list[bytes]:
    """Return articles made of words of the demo's samples, each drawn from those that follow the previous word there.

    Two fifths are reposts of an earlier one, cut at the end. They make no sense, but their words, lengths and n-grams
    are as varied as those of news.
    """
    source = random.Random(seed)
    walks = Walks()
    texts: list[str] = []
    articles: list[bytes] = []
    for number in range(count):
        if texts and source.random() < _REPOSTS:
            body = source.choice(texts)[: -source.randrange(1, 200)]
        else:
            body = walks.text(source.randrange(150, 900), source)
            texts.append(body)
        fields = {"id": f"bench-{number}", "title": body[:20], "body": body, "published_at": 1_790_000_000 + number}
        articles.append(orjson.dumps(fields))
    return articles
