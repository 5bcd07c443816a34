"""The labelled stream: which stories there are, who reposts them how and when, and the order of arrival.

Knows times, popularity and labels; nothing of how texts are written, edited or encoded.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random

from deploy.demo.samples.broken import broken_messages
from deploy.demo.samples.bulletins import bulletins
from deploy.demo.samples.corpus import BaseText, Form, Site, base_texts, sites
from deploy.demo.samples.message import Publication, Sample, encode
from deploy.demo.samples.operators import OPERATORS, Operator, Text

_END = datetime(2026, 10, 18, 20, tzinfo=timezone(timedelta(hours=8)))
_START = _END - timedelta(hours=72)
_LAST_EVENT = _END - timedelta(hours=9)
_EVENT_SPAN = timedelta(hours=3)  # within which reporters publish their stories of one event
_LAG_SECONDS = (5, 180)  # between publication and arrival
_SHORTEST_DELAY = timedelta(minutes=4)  # longer than any lag, so that a repost never overtakes its original
_LONGEST_DELAY = timedelta(hours=30)
_REPOSTS_PER_OPERATOR = {Form.NEWS: 9, Form.POST: 5, Form.ENGLISH: 2}
_REDELIVERIES = 2
_SHARE_WITH_KEY = 0.8


@dataclass(frozen=True, slots=True)
class _Story:
    base: BaseText
    kind: str
    site: Site
    moment: datetime

    @property
    def text(self) -> Text:
        return Text(self.base.title, self.base.body)


@dataclass(frozen=True, slots=True)
class _Arrival:
    moment: datetime
    sample: Sample


def sample_stream(seed: int = 20) -> list[Sample]:
    """Return the whole stream in order of arrival; the same seed gives the same bytes.

    Every repost comes after its original. The hand-written texts are the same for all seeds.
    """
    stories = _stories(_generator(seed, "stories"))
    first = _originals(stories, _generator(seed, "originals"))
    arrivals = [
        *first,
        *_reposts(stories, _generator(seed, "reposts")),
        *_redeliveries(first, _generator(seed, "redeliveries")),
        *_broken(_generator(seed, "broken")),
    ]
    return [arrival.sample for arrival in sorted(arrivals, key=lambda arrival: arrival.moment)]


def _generator(seed: int, part: str) -> Random:
    """Return a generator for one part, so that a change in one part leaves the others as they are."""
    return Random(f"{seed}/{part}")


def _stories(rng: Random) -> list[_Story]:
    """Give every text a kind, a site and a moment, in order of publication."""
    texts = [(text, "event-pair" if text.event else "original") for text in base_texts()]
    texts += [(text, "bulletin") for text in bulletins(rng)]
    events: dict[str, datetime] = {}
    stories = []
    for text, kind in texts:
        event = events.setdefault(text.event or text.id, _between(_START, _LAST_EVENT, rng))
        moment = _between(event, event + _EVENT_SPAN, rng)
        stories.append(_Story(text, kind, rng.choice(sites(text.form)), moment))
    return sorted(stories, key=lambda story: story.moment)


def _originals(stories: list[_Story], rng: Random) -> list[_Arrival]:
    return [_original(story, rng) for story in stories]


def _original(story: _Story, rng: Random) -> _Arrival:
    base = story.base
    publication = Publication(base.id, story.text, story.site, story.moment, base.omit)
    return _arrival(publication, story.kind, None, rng)


def _reposts(stories: list[_Story], rng: Random) -> list[_Arrival]:
    """Let every operator edit some stories of each form that it fits, popular ones more often than others."""
    arrivals = []
    for form, operators in OPERATORS.items():
        candidates = [story for story in stories if _can_be_reposted(story, form)]
        quotable = candidates[2:]  # each has one of another event before it, even if two are of one event
        popularity = _popularity(quotable, rng)
        for operator in operators:
            chosen = _popular(quotable, popularity, _REPOSTS_PER_OPERATOR[form], rng)
            arrivals += [_repost(story, operator, candidates, rng) for story in chosen]
    return arrivals


def _can_be_reposted(story: _Story, form: Form) -> bool:
    return story.base.form is form and story.kind != "bulletin" and not story.base.omit


def _popularity(stories: list[_Story], rng: Random) -> dict[str, float]:
    """Give the stories, in random order, weights that fall with the root of their rank."""
    return {story.base.id: (rank + 1) ** -0.5 for rank, story in enumerate(rng.sample(stories, len(stories)))}


def _popular(stories: list[_Story], weights: dict[str, float], count: int, rng: Random) -> list[_Story]:
    """Sample without replacement, weighted (Efraimidis and Spirakis 2006)."""
    ranked = sorted(stories, key=lambda story: rng.random() ** (1 / weights[story.base.id]), reverse=True)
    return ranked[:count]


def _repost(story: _Story, operator: Operator, candidates: list[_Story], rng: Random) -> _Arrival:
    name = operator.__name__
    other = rng.choice(_earlier(story, candidates))
    site = rng.choice([site for site in sites(story.base.form) if site != story.site])
    publication = Publication(
        f"{story.base.id}.{name}",
        operator(story.text, rng, other.text),
        site,
        story.moment + _delay(story.moment, rng),
    )
    return _arrival(publication, name, story.base.id, rng)


def _earlier(story: _Story, candidates: list[_Story]) -> list[_Story]:
    """Return earlier stories of other events, so that no original follows a repost that quotes it."""
    before = candidates[: bisect_left(candidates, story.moment, key=lambda candidate: candidate.moment)]
    return [other for other in before if not story.base.event or other.base.event != story.base.event]


def _delay(moment: datetime, rng: Random) -> timedelta:
    """Draw a delay whose logarithm is uniform: most copies come soon, some come a day later."""
    longest = min(_LONGEST_DELAY, _END - moment)
    ratio: float = longest / _SHORTEST_DELAY
    factor: float = ratio ** rng.random()
    return _SHORTEST_DELAY * factor


def _redeliveries(arrivals: list[_Arrival], rng: Random) -> list[_Arrival]:
    named = [arrival for arrival in arrivals if arrival.sample.id]
    return [_redelivery(arrival, rng) for arrival in rng.sample(named, _REDELIVERIES)]


def _redelivery(arrival: _Arrival, rng: Random) -> _Arrival:
    sample = arrival.sample
    again = Sample(sample.key, sample.value, "redelivery", sample.id, repost_of=sample.id)
    return _Arrival(arrival.moment + timedelta(minutes=rng.randint(10, 90)), again)


def _broken(rng: Random) -> list[_Arrival]:
    return [_Arrival(_between(_START, _END, rng), sample) for sample in broken_messages(_START.isoformat())]


def _arrival(publication: Publication, kind: str, repost_of: str | None, rng: Random) -> _Arrival:
    article_id = None if "id" in publication.omit else publication.id
    key = article_id.encode() if article_id and rng.random() < _SHARE_WITH_KEY else None
    sample = Sample(key, encode(publication, rng), kind, article_id, repost_of)
    return _Arrival(publication.moment + timedelta(seconds=rng.randint(*_LAG_SECONDS)), sample)


def _between(start: datetime, end: datetime, rng: Random) -> datetime:
    return start + (end - start) * rng.random()
