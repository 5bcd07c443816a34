"""The article records that a run touches, and the names under their URLs: read from the state, changed, written back.

Knows which name has which record; knows nothing of clusters or of why a record changes.
"""

from collections.abc import Collection, Iterable, Sequence

from stream_dedup.engine.versions import URL_NAMES, load_records, packed_names, unpacked_names
from stream_dedup.index.records.generations import newest
from stream_dedup.index.records.new_records import NewRecord, packed_records
from stream_dedup.index.records.records import ArticleRecord, key_of
from stream_dedup.index.stores.store import Family, Puts, Store


class RecordChanges:
    """The records of a run.

    Args:
        store: the state.
        live: generations that have not expired, the newest last.
    """

    def __init__(self, store: Store, live: Sequence[int]) -> None:
        self._store = store
        self._live = live
        self._records: dict[str, ArticleRecord | None] = {}
        self._owners: dict[int, Sequence[str]] = {}  # by URL, as they were before the run
        self._urls: dict[int, Sequence[str]] = {}
        # In order of arrival; those in `_new` with their index there.
        self._changed: dict[str, int | None] = {}
        self._new: list[NewRecord] = []

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._changed)

    def prefetch(self, names: Iterable[str]) -> None:
        """Read the records of articles and the names under their URLs, with one look-up each."""
        names = {*names}
        self._load(names)
        self._load_owners([record.url for name in names if (record := self._records[name]) and record.url])

    def record(self, name: str) -> ArticleRecord | None:
        """Return the current record of an article by its name, None if it has none."""
        if name not in self._records:
            place = self._changed.get(name)
            if place is None:
                self._load({name})
            else:
                self._records[name] = self._new[place].whole()
        return self._records[name]

    def owners(self, url: int, before: Sequence[str] | None = None) -> Sequence[str]:
        """Return the current names of the articles of a URL, the newest first.

        Args:
            url: hash of the URL.
            before: the names before this run, if they were already read.
        """
        if url in self._urls:
            return self._urls[url]
        if before is not None:
            return before
        if url not in self._owners:
            self._load_owners([url])
        return self._owners[url]

    def note(self, name: str, record: ArticleRecord, url_names: Sequence[str] | None = None) -> None:
        """Set the record of an article.

        Args:
            name: its name.
            record: what became of it.
            url_names: names known under its URL before this run, if they were already read.
        """
        self.replace(name, record)
        if record.url:
            others = [other for other in self.owners(record.url, url_names) if other != name]
            self._urls[record.url] = [name, *others][:URL_NAMES]

    def note_new(self, name: str, record: NewRecord) -> None:
        """Set the record of an article whose id and URL were not seen before."""
        self._records.pop(name, None)
        self._changed[name] = len(self._new)
        self._new.append(record)
        if record.url:
            self._urls[record.url] = [name]

    def replace(self, name: str, record: ArticleRecord | None) -> None:
        """Change or delete the record of an article, and leave the names under its URL as they are."""
        self._records[name] = record
        self._changed[name] = None

    def renew(self, name: str, stream_ms: int) -> None:
        """Remember an article for a window from now, so that its id does not come back in a new cluster."""
        record = self.record(name)
        if record is None or record.decided_ms >= stream_ms:
            return
        self.replace(name, record.renewed(stream_ms))
        if record.url:
            # The names under its URL live as long, in the same order.
            self._urls[record.url] = self.owners(record.url)

    def forget(self, name: str, record: ArticleRecord) -> None:
        """Delete the record of an article."""
        self.replace(name, None)
        if record.url:
            self._urls[record.url] = [other for other in self.owners(record.url) if other != name]

    def writes(self) -> list[Puts]:
        """Return what to write, with keys that do not include the generation."""
        return [
            Puts(Family.ARTICLES, [name.encode() for name in self._changed], self._packed()),
            Puts(Family.URLS, list(map(key_of, self._urls)), list(map(packed_names, self._urls.values()))),
        ]

    def _packed(self) -> list[bytes | None]:
        packed: list[bytes | None] = [*packed_records(self._new)]
        whole = {name: record and record.pack() for name, record in self._records.items() if name in self._changed}
        return [
            whole[name] if place is None or name in whole else packed[place] for name, place in self._changed.items()
        ]

    def _load(self, names: Iterable[str]) -> None:
        missing = {name for name in names if name not in self._records}
        self._records |= dict.fromkeys(missing)
        self._records |= load_records(self._store, self._live, missing)

    def _load_owners(self, urls: Collection[int]) -> None:
        values = newest(self._store, Family.URLS, list(map(key_of, urls)), self._live)
        self._owners |= zip(urls, map(unpacked_names, values), strict=True)
