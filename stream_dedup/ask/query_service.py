"""All queries in one place, for the HTTP API and the command line.

Knows what answers which query; knows nothing of HTTP or the terminal.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress

from stream_dedup.article import Article, Relation
from stream_dedup.ask.answers import (
    ArticleAnswer,
    ClusterAnswer,
    FileAnswer,
    MessageLocation,
    PublishedLink,
    ReasonAnswer,
    ShadowAnswer,
    SimilarAnswer,
    SimilarAnswers,
    StatusAnswer,
    TextAnswer,
)
from stream_dedup.ask.bounds import BlankError, check_length, quoted
from stream_dedup.ask.figures import Figures, FiguresReader, ShadowFigures
from stream_dedup.ask.follower import StateFollower, View
from stream_dedup.ask.lookup import Lookup, message_location
from stream_dedup.ask.measures import measures_of
from stream_dedup.ask.similar import SimilarArticle, query_of, similar_articles
from stream_dedup.ask.texts import Texts
from stream_dedup.ask.warming import warm_up
from stream_dedup.closing import SelfClosing
from stream_dedup.engine.explain import Explainer, ground_of
from stream_dedup.engine.versions import load_records
from stream_dedup.engine.window import Window
from stream_dedup.files.run_positions import runs_of
from stream_dedup.index.records.ledger import Positions, Progress, load_positions
from stream_dedup.output_fields import iso, rounded
from stream_dedup.registry import RegistryError
from stream_dedup.scope import id_of, name_of
from stream_dedup.settings import Settings
from stream_dedup.stream.formats import Formats, give_up
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.messages import Messages
from stream_dedup.stream.kafka.places import in_input
from stream_dedup.stream.state.states import is_of_files, state_to_read
from stream_dedup.text.blank import is_blank
from stream_dedup.version import __version__

# Entries made searchable per second, at some 20 us each: while searches keep coming, and otherwise.
_SEARCHED, _UNSEARCHED = 2_048, 512
_AT_ONCE = 2_048  # at most in one refresh, since queries wait meanwhile
_SEARCH_SECONDS = 60.0  # after a search, others are expected for so long
_CATCH_UP_SECONDS = 5.0
_RATE_SECONDS = 0.9  # at least, between the two refreshes that a rate is computed from


class NoReasonError(LookupError):
    """There is no second article to compare with."""


class UniqueArticleError(NoReasonError):
    """There is none because the article is not a copy."""


class QueryService(SelfClosing):
    """Answers queries about the state of a service; thread-safe.

    Use it as a context manager, or call `close`.

    Args:
        settings: the service's settings.

    Raises:
        StoreError: there is no state for these settings, or it cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory, self._from_files = state_to_read(settings), is_of_files(settings)
        self._window = Window(settings.window)
        self._loading = threading.Lock()
        self._loaded: Explainer | None = None
        self._pace = _Pace()
        self._figures = FiguresReader(settings.http)
        self._searched_until = 0.0
        self._looked_at = time.monotonic()
        with ExitStack() as opened:
            self._messages = opened.enter_context(closing(Messages(settings)))
            formats = opened.enter_context(Formats(settings, give_up))
            self._texts = Texts(self._messages, formats.decoder(), from_files=self._from_files)
            self._read_link = formats.link_reader()
            self._follower = opened.enter_context(StateFollower(self._directory, settings))
            self._opened = opened.pop_all()

    def refresh(self) -> None:
        """Read what was written since the last refresh.

        Raises:
            StoreError: the state is gone, or cannot be read; the next refresh may find one.
        """
        a_second = _SEARCHED if time.monotonic() < self._searched_until else _UNSEARCHED
        seconds = max(time.monotonic() - self._looked_at, self._settings.api.refresh_ms / 1000)
        # On a faster stream the writer puts entries into a run before all of them could be made searchable here.
        keeps_up = self._pace.entries <= a_second
        self._look(min(_AT_ONCE, round(a_second * seconds)) if keeps_up else 0)

    def warm_up(self) -> None:
        """Read, compile and connect now rather than at the first query."""
        warm_up(self._settings, self._explainer())
        # Most queries do not need the broker.
        with suppress(BrokerError, RegistryError):
            self.latest(1)

    def catch_up(self) -> None:
        """Refresh until a search sees every entry; give up if the writer adds entries faster.

        Raises:
            StoreError: the state is gone, or cannot be read.
        """
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        self._searched_until = deadline
        unseen, before = self._unseen(), -1
        while unseen not in {0, before} and time.monotonic() < deadline:
            self._look(_AT_ONCE)
            unseen, before = self._unseen(), unseen

    def article(self, article_id: str, scope: str = "") -> ArticleAnswer:
        """Return what was decided on an article.

        Raises:
            UnknownArticleError: the article is not known.
            StoreError: the state cannot be read.
        """
        with self._follower.view() as view:
            return self._lookup(view).article(name_of(scope, article_id))

    def cluster(self, article_id: str, scope: str = "", *, most: int = 100, skipped: int = 0) -> ClusterAnswer:
        """Return the cluster that an article is in.

        Args:
            article_id: id of any of its articles.
            scope: that article's scope.
            most: the largest number of members to return.
            skipped: number of members to skip.

        Raises:
            UnknownArticleError: the article is not known.
            StoreError: the state cannot be read.
        """
        with self._follower.view() as view:
            return self._lookup(view).cluster(name_of(scope, article_id), most, skipped)

    def similar(self, article: Article, most: int = 10, *, besides: str | None = None) -> SimilarAnswers:
        """Return the articles that an article resembles, without storing it.

        Args:
            article: the article; its id is ignored.
            most: the largest number of articles to return.
            besides: id, in the same scope, of an article to leave out of the decision.

        Raises:
            TooLongError: the article is too long to be judged.
            BlankError: it shows nothing.
            StoreError: the state cannot be read.
        """
        bounds = self._settings.input
        check_length("the body", article.body, bounds.max_body_chars, "input.max_body_chars")
        check_length("the title", article.title, bounds.max_title_chars, "input.max_title_chars")
        if is_blank(article.body):
            raise BlankError("the text is blank: there is nothing to compare")
        self._searched_until = time.monotonic() + _SEARCH_SECONDS
        explainer = self._explainer()
        with self._follower.view() as view:
            # Words and fingerprints need no lock: they are computed outside of it, so that other threads need not wait.
            seen = view
        query = query_of(article, seen, explainer.fingerprinter)
        with self._follower.view() as view:
            left_out = name_of(article.scope, besides) if besides is not None else None
            found = similar_articles(query, view, self._settings, self._cutoff_ms(view.progress), left_out)
            return SimilarAnswers(
                decision="duplicate" if found.is_duplicate else "unique",
                articles=self._similar_answers(view, found.articles[:most]),
                unseen_entries=view.unseen,
            )

    def reason(self, article_id: str, scope: str = "", other: str | None = None) -> ReasonAnswer:
        """Return why an article is, or is not, a copy.

        Args:
            article_id: id of the article.
            scope: scope of both articles.
            other: id of the article to compare it with; None for the one that it was linked to.

        Raises:
            UnknownArticleError: one of them is not known.
            UniqueArticleError: the article was not linked to any other.
            NoReasonError: the article that it was linked to is no longer known.
            LostTextError: the text of one is no longer in its topic, or cannot be read.
            BrokerError: the broker does not answer.
            StoreError: the state cannot be read.
        """
        explainer = self._explainer()
        name = name_of(scope, article_id)
        with self._follower.view() as view:
            lookup = self._lookup(view)
            record = lookup.record(name)
            joined = lookup.joined(name, record)
            link = lookup.link(joined)
            matched = other if other is not None or link is None else link.matched
            against = lookup.known(name_of(scope, matched)) if matched is not None else None
            if matched is None or (other is None and against is None):
                raise _no_reason(article_id, record.relation, self._settings.verify.duplicates)
            against = against or lookup.record(name_of(scope, matched))
            origins = record.origin, against.origin
            decided = link if link is not None and link.matched == matched else None
            revised = joined is not None and decided is not None and lookup.is_revised(joined, against)
            epoch, learnt = view.epoch, view.learnt
        names = name, name_of(scope, matched)
        articles = self._texts.article(names[0], origins[0]), self._texts.article(names[1], origins[1])
        explanation = explainer.explain(*articles, epoch, learnt)
        return ReasonAnswer(
            first=_text_answer(articles[0]),
            second=_text_answer(articles[1]),
            decided=decided,
            revised=revised,
            **measures_of(explanation).model_dump(),
        )

    def latest(self, count: int) -> list[dict[str, object]]:
        """Return the newest links, newest first, with the fields they have in the topic of duplicates.

        Raises:
            BrokerError: the broker does not answer.
            RegistryError: `output.format` needs the schema registry and it does not answer.
        """
        if self._from_files:
            return []  # a file run writes its links to its result files
        messages = self._messages.newest(self._settings.output.duplicates, count)
        links = (self._link(message.value()) for message in reversed(messages))
        return [link for link in links if link is not None]

    def status(self) -> StatusAnswer:
        """Return how far the service has come.

        Raises:
            StoreError: the state cannot be read.
        """
        # With a state made from files, whatever answers on the port has a different state.
        answered = self._figures.read() if not self._from_files else None
        figures = answered or Figures()
        with self._follower.view() as view:
            progress, positions = view.progress, load_positions(view.store)
            unseen, epoch = view.unseen, view.epoch.number
        return StatusAnswer(
            version=__version__,
            directory=str(self._directory),
            of_files=self._from_files,
            running=answered is not None,
            ready=figures.ready,
            not_ready=figures.not_ready,
            steps=progress.steps,
            articles_judged=progress.judged,
            entries=progress.entries - progress.floor,
            unseen_entries=unseen,
            idf_epoch=epoch,
            stream_time=iso(progress.stream_ms, "seconds"),
            window_since=iso(self._cutoff_ms(progress), "seconds"),
            input=[] if self._from_files else _input_of(positions),
            files=[FileAnswer.model_validate(run) for run in runs_of(positions)] if self._from_files else [],
            decisions=dict(figures.decisions),
            duplicates=figures.duplicates,
            shadow=_shadow_answer(figures.shadow) if figures.shadow is not None else None,
            consumer_lag=figures.lag,
            rate=self._pace.rate,
        )

    def close(self) -> None:
        """Release what was opened."""
        self._opened.close()

    def _look(self, most: int) -> None:
        """Refresh once, and make at most so many entries searchable."""
        self._looked_at = time.monotonic()
        self._follower.refresh(most)
        with self._follower.view() as view:
            self._pace.note(view.progress)

    def _unseen(self) -> int:
        with self._follower.view() as view:
            return view.unseen

    def _explainer(self) -> Explainer:
        """Return the explainer. It holds the dictionaries, which are read at the first query that needs them."""
        with self._loading:
            self._loaded = self._loaded or Explainer(self._settings)
            return self._loaded

    def _lookup(self, view: View) -> Lookup:
        duplicates, scoped = self._settings.verify.duplicates, self._settings.input.scoped
        cutoff_ms = self._cutoff_ms(view.progress)
        return Lookup(view, duplicates, cutoff_ms, scoped=scoped, from_files=self._from_files)

    def _cutoff_ms(self, progress: Progress) -> int:
        return self._window.moment(progress.stream_ms).cutoff_ms

    def _link(self, value: bytes | None) -> dict[str, object] | None:
        """Return a link, or None if the value is not one: others than the service may write to the topic."""
        with suppress(ValueError):
            if value is not None and (link := self._read_link(value)) is not None:
                PublishedLink.model_validate(link)
                return link
        return None

    def _similar_answers(self, view: View, found: list[SimilarArticle]) -> list[SimilarAnswer]:
        records = load_records(view.store, view.progress.live, {one.name for one in found})
        known = [one for one in found if one.name in records]
        canonicals = self._lookup(view).canonicals([one.cluster for one in known], [one.name for one in known])
        return [
            SimilarAnswer(
                id=id_of(one.name),
                relation=one.relation,
                ground=ground_of(one.relation, one.jaccard, one.containment, one.smallest, self._settings),
                jaccard=rounded(one.jaccard),
                containment=rounded(one.containment),
                hamming=one.hamming,
                canonical=id_of(canonical),
                cluster=one.cluster,
                source=records[one.name].source,
                published_at=iso(records[one.name].published_ms),
                message=message_location(records[one.name].origin),
            )
            for one, canonical in zip(known, canonicals, strict=True)
        ]


def _no_reason(article_id: str, relation: Relation | None, duplicates: Sequence[Relation]) -> NoReasonError:
    name = "name an article to compare it with (`other`, on the command line `--other`)"
    if relation in duplicates and relation is not Relation.REVISION:
        return NoReasonError(f"the article that {quoted(article_id)} is a copy of has expired or was withdrawn: {name}")
    if relation is Relation.REVISION:
        return UniqueArticleError(f"{quoted(article_id)} is a revision of an article, but not a copy: {name}")
    beside = f", though {relation}" if relation is not None else ""
    return UniqueArticleError(f"{quoted(article_id)} is unique{beside}, not a copy: {name}")


class _Pace:
    """Rates per second, computed from the last refreshes.

    Attributes:
        rate: articles judged; None if not yet known.
        entries: entries added to the index.
    """

    def __init__(self) -> None:
        self._seen: tuple[float, Progress] | None = None
        self.rate: float | None = None
        self.entries = 0.0

    def note(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._seen is None:
            self._seen = now, progress
            return
        seconds, before = now - self._seen[0], self._seen[1]
        if seconds >= _RATE_SECONDS:
            self.rate = round(max(0, progress.judged - before.judged) / seconds, 1)
            self.entries = max(0, progress.entries - before.entries) / seconds
            self._seen = now, progress


def _shadow_answer(shadow: ShadowFigures) -> ShadowAnswer:
    return ShadowAnswer(judging=shadow.judging, articles=shadow.articles, disagreements=dict(shadow.disagreements))


def _text_answer(article: Article) -> TextAnswer:
    return TextAnswer(
        id=article.id,
        title=article.title,
        body=article.body,
        source=article.source,
        url=article.url,
        published_at=iso(article.published_ms),
        message=message_location(article.origin),
    )


def _input_of(positions: Positions) -> list[MessageLocation]:
    return [
        MessageLocation(topic=topic, partition=partition, offset=offset)
        for (topic, partition), offset in sorted(in_input(positions).items())
    ]
