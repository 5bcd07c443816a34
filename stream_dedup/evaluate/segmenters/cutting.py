"""What all segmenters share: a library that is loaded at first use, and words without punctuation.

Knows how a library is looked up and what a word is; knows no library.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

from stream_dedup.evaluate.algorithm import NotAvailable
from stream_dedup.text.forms import SEPARATOR

Cut = Callable[[str], Iterable[str]]

REPLACEMENT = "\ufffd"  # Unicode's replacement character
# Lone surrogates, and the separator of words that a library returns in one string.
_UNREADABLE = re.compile(f"[\ud800-\udfff{SEPARATOR}]")


@dataclass(slots=True)
class CuttingSegmenter:
    """A segmenter from a library. What it loads belongs to the process, so that it can be pickled at any time.

    Attributes:
        name: as in `--segmenters` and in reports.
        source: the paper or project it comes from.
        loader: `module:function` that loads the library and returns what cuts one text.
        modules: modules that must be installed.
        advice: what to do if they are not installed, or do not work.
        tried: whether it has to be loaded to know that it works, since it also needs a model or a licence.
        model: environment variable that names its model, a file or a folder; empty if there is none.
        slow: whether it takes about a minute or more on 3,000 articles.
    """

    name: str
    source: str
    loader: str
    modules: tuple[str, ...] = ()
    advice: str = ""
    tried: bool = False
    model: str = ""
    slow: bool = False

    def missing(self) -> str | None:
        """Return why it cannot be used here and what to do about it; None if it can."""
        absent = [module for module in self.modules if find_spec(module) is None]
        if absent:
            return f"{' and '.join(absent)} not installed: {self.advice}"
        try:
            if self.tried:
                _loaded(self.loader)
        except Exception as error:  # noqa: BLE001  # whatever a third-party library raises is the reason
            return f"{str(error) or type(error).__name__} ({self.advice})"
        return None

    def versions(self) -> list[str]:
        """Return the releases of its modules, and which model the environment names, with the state of its files."""
        return [*map(_release, self.modules), *(_model(os.environ.get(self.model, "")) if self.model else ())]

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of each text, in order, without those that are only punctuation or blanks.

        Lone surrogates are replaced; a library may drop or join characters.

        Raises:
            NotAvailable: it cannot be used here.
        """
        cut = self._load()
        return [[token.strip() for token in cut(_readable(text)) if is_word(token)] for text in texts]

    def _load(self) -> Cut:
        if reason := self.missing():
            raise NotAvailable(f"{self.name}: {reason}")
        try:
            return _loaded(self.loader)
        except Exception as error:
            raise NotAvailable(f"{self.name}: {error}") from error


def is_word(token: str) -> bool:
    """Return whether a token has a letter, a digit or a Han character; the rest is punctuation and blanks."""
    return token.isalnum() or any(map(str.isalnum, token))


def _readable(text: str) -> str:
    return _UNREADABLE.sub(REPLACEMENT, text)


@cache
def _release(module: str) -> str:
    """Return the packages that a module comes from, with their versions; only its name if it is not installed."""
    return " ".join([module, *(f"{name} {version(name)}" for name in sorted({*_packages().get(module, ())}))])


@cache
def _packages() -> Mapping[str, Sequence[str]]:
    return packages_distributions()


def _model(path: str) -> list[str]:
    """Return the path of a model, and those of its files with their sizes and times; all are escaped."""
    files = [Path(path), *sorted(Path(path).rglob("*"))] if path else []
    states = [(str(file), file.stat()) for file in files if file.is_file()]
    return [repr(path), *(f"{file!r} {state.st_size} {state.st_mtime_ns}" for file, state in states)]


@cache
def _loaded(loader: str) -> Cut:
    cut: Cut = resolve_name(loader)()
    return cut
