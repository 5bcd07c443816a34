"""Clusters as a reader of unique articles and links would count them, to compare with the topic of clusters.

Knows what the two topics say and in which order; does not read the topic of clusters itself.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from tests.stream.records import Outputs, Record

Clusters = dict[str, dict[str, str]]
"""The members of each cluster, by canonical article (itself a member), each with its source."""


def recount(outputs: Outputs, offset_of: Callable[[Record], int]) -> Clusters:
    """Return the clusters as they must be at the end.

    Args:
        outputs: of a whole run over one partition.
        offset_of: returns the input offset of a unique article.
    """
    book, unique = _Book(), sorted(outputs.unique, key=offset_of)
    for record in outputs.duplicates:
        link = record.json()
        while unique and link["offset"] is not None and offset_of(unique[0]) < link["offset"]:
            book.unique(unique.pop(0))
        book.link(link)
    for record in unique:
        book.unique(record)
    return book.clusters


def told(records: Sequence[Record]) -> dict[str, tuple[int, Counter[str]]]:
    """Return the final contents of the topic of clusters: copies and sources, by canonical article."""
    latest = {(record.key or b"").decode(): record for record in records}
    return {
        name: (
            record.json()["copies"],
            Counter({one["source"]: one["articles"] for one in record.json()["sources"]}),
        )
        for name, record in latest.items()
        if record.value is not None
    }


def counted(clusters: Clusters, also: Sequence[str] = ()) -> dict[str, tuple[int, Counter[str]]]:
    """Return copies and sources of the clusters that have copies, in the form of `told`.

    Args:
        clusters: all of them.
        also: clusters without copies now that once had some.
    """
    return {
        name: (len(members) - 1, Counter(members.values()))
        for name, members in clusters.items()
        if len(members) > 1 or name in also
    }


class _Book:
    """Clusters while the records are being counted."""

    def __init__(self) -> None:
        self.clusters: Clusters = {}
        self._homes: dict[str, str] = {}

    def unique(self, record: Record) -> None:
        """Enter a new article, or a new text of one."""
        name, source = (record.key or b"").decode(), record.json().get("source", "")
        if self._homes.get(name) != name:
            self._leave(name)
        self._join(name, name, source)

    def link(self, link: dict[str, str]) -> None:
        """Enter a copy, a withdrawal or a succession."""
        name, home = link["id"], link["duplicate_of"]
        if link["relation"] == "redelivery":
            return
        if link["relation"] == "withdrawn":
            old = self._homes[name]
            self._leave(name)
            if home is not None:
                self._rename(old, home)
        elif link["relation"] == "succession":
            self._rename(name, home)
        else:
            if self._homes.get(name) != home:
                self._leave(name)
            self._join(home, name, link["source"] or "")

    def _join(self, home: str, name: str, source: str) -> None:
        self.clusters.setdefault(home, {})[name] = source
        self._homes[name] = home

    def _leave(self, name: str) -> None:
        home = self._homes.pop(name, None)
        if home is not None:
            del self.clusters[home][name]
            if not self.clusters[home]:
                del self.clusters[home]

    def _rename(self, old: str, new: str) -> None:
        if old != new:
            for name, source in self.clusters.pop(old, {}).items():
                self._join(new, name, source)
