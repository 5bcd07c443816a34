"""The phrases that sites and users put around and into texts, by language and purpose.

Knows the data file and how placeholders in phrases are filled; knows no edit.
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
        sites, names, cities: what placeholders are filled with.
        before, after: lines with sources and navigation, and with disclaimers, promotion and navigation.
        editors: lines that name an editor.
        datelines: what is added before the first sentence.
        headlines: patterns of other headlines, from the old one or from the beginning of the body.
        original_titles: lines that quote the old headline.
        teasers: what follows a text that was cut.
        bridges: transitions to another piece of news.
        comments, users, hashtags: what users of microblogs add.
        places: place names that can replace each other.
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
        chinese, english: the phrases of one language.
        punctuation: house styles, each of which maps marks to other marks.
        emoji: emoji of one or several code points.
        wrappers: tags around a paragraph.
        debris: other remnants of a page.
        han: common Han characters, the commonest first.
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
    """Return the phrases in the data file."""
    data = files(__package__).joinpath("phrases.json").read_bytes()
    return Phrases.model_validate_json(data)


def book(text: Text) -> Book:
    """Return the phrases in the language of a text."""
    return phrases().chinese if is_chinese(text) else phrases().english


def filled(pattern: str, rng: Random, text: Text, *, lead: str = "") -> str:
    """Return a phrase with its placeholders filled: names, places and times at random, the headline from the text."""
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
