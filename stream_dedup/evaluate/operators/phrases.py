"""The phrases that sites and users put around and into texts, by language and purpose.

Knows the data file and how blanks in phrases are filled; knows no edit.
"""

from functools import cache
from importlib.resources import files
from random import Random

from pydantic import BaseModel, ConfigDict

from stream_dedup.evaluate.operators.text import Text, is_chinese

_Lines = tuple[str, ...]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Book(_Data):
    """The phrases of one language.

    Attributes:
        sites, names, cities: what blanks are filled with.
        before, after: lines of source, and of disclaimers, promotion and navigation.
        editors: lines that name an editor.
        datelines: what stands in front of the first sentence.
        headlines: patterns of other headlines, from the old one or from the beginning of the body.
        original_titles: lines that tell the old headline.
        teasers: marks behind a text that was cut.
        bridges: what leads over to another piece of news.
        comments, users, hashtags: of microblogs.
        places: names that one text may have where another has others.
    """

    sites: _Lines
    names: _Lines
    cities: _Lines
    before: _Lines
    after: _Lines
    editors: _Lines
    datelines: _Lines
    headlines: _Lines
    original_titles: _Lines
    teasers: _Lines
    bridges: _Lines
    comments: _Lines
    users: _Lines
    hashtags: _Lines
    places: _Lines


class Phrases(_Data):
    """All phrases.

    Attributes:
        chinese, english: those of a language.
        punctuation: house styles: which mark stands for which.
        emoji: of one or several code points.
        wrappers: tags around a paragraph.
        debris: other left-overs of a page.
        han: common characters, the commonest first.
    """

    chinese: Book
    english: Book
    punctuation: tuple[dict[str, str], ...]
    emoji: _Lines
    wrappers: _Lines
    debris: _Lines
    han: str


@cache
def phrases() -> Phrases:
    """Return the phrases that are shipped."""
    data = files(__package__).joinpath("phrases.json").read_bytes()
    return Phrases.model_validate_json(data)


def book(text: Text) -> Book:
    """Return the phrases in the language of a text."""
    return phrases().chinese if is_chinese(text) else phrases().english


def filled(pattern: str, rng: Random, text: Text, *, lead: str = "") -> str:
    """Return a phrase with its blanks filled: names, places and times at random, the headline from the text."""
    own = book(text)
    site, other_site = rng.sample(own.sites, 2)
    name, other_name = rng.sample(own.names, 2)
    return pattern.format(
        title=text.title or lead,
        lead=lead,
        site=site,
        other_site=other_site,
        name=name,
        other_name=other_name,
        city=rng.choice(own.cities),
        month=rng.randint(1, 12),
        day=rng.randint(10, 28),
        hour=rng.randint(6, 23),
        minute=rng.randint(10, 59),
    )
