"""A state that grows as it would under a stream, and batches to look up in it.

Knows synthetic texts, fingerprints and their copies; knows nothing of what is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stream_dedup.arrays import F64, I64, U64
from stream_dedup.compiled.hashing import mix64
from stream_dedup.engine.judged import Change
from stream_dedup.engine.state import State
from stream_dedup.fingerprint.features import Features, landmark_rule
from stream_dedup.fingerprint.particulars import SmallSketches
from stream_dedup.fingerprint.sketch import PAD, Sketches, landmark_count
from stream_dedup.index.steps import Step, step_writes
from stream_dedup.index.stores.rocks import open_store
from stream_dedup.planner.distances import copies_of
from stream_dedup.planner.lists import GENERATIONS
from stream_dedup.settings import Settings
from tests.benchmarks.filled import INDEXED_SHARE, step_of
from tests.benchmarks.population import Population, features_of, fingerprints_of
from tests.benchmarks.texts import GRAMS, Texts, copies, texts

BATCH = 512  # articles looked up at once
STEP = 4_096  # entries written at once
REMEMBERED = 64  # entries of each step from which copies may be made
_SIMILARITY = 0.8  # of copies to their originals
_NUMBERS, _PLACES = 9, 4  # in an article's sketches


class Filling:
    """A state that grows.

    Args:
        settings: settings of the engine.
        entries: final number of entries; a generation begins with each third.
    """

    def __init__(self, settings: Settings, entries: int = 1) -> None:
        self.settings = settings
        self.marks = landmark_count(GRAMS, landmark_rule(settings))
        self.population = Population(7)
        self._generation = -(-entries // GENERATIONS)
        self.merging_seconds = 0.0  # CPU time, over all states opened so far
        self._originals: list[tuple[int, np.ndarray[tuple[int, int], np.dtype[np.float32]]]] = []

    def open(self, directory: Path) -> None:
        """Open the state in a directory."""
        store = open_store(directory, self.settings.state)
        self.state = State(store, self.settings)

    def close(self) -> None:
        """Close the state; it can be reopened."""
        self.state.close()
        self.merging_seconds += self.state.index.shelf.reads.merging_seconds

    def remember(self, first: int, sums: F64) -> None:
        """Keep the sums of the first of some entries, starting at a number, to make copies from."""
        self._originals.append((first, sums[:REMEMBERED].astype(np.float32)))

    def grow(self, entries: int) -> None:
        """Add entries until there are so many."""
        while self.state.progress.entries < entries:
            self.apply(self.step(min(STEP, entries - self.state.progress.entries)))

    def step(self, count: int) -> Step:
        """Return a step that adds the next entries."""
        first = self.state.progress.entries
        sums = self.population.sums(count)
        self.remember(first, sums)
        fingerprints, _ = fingerprints_of(sums)
        ends = (first + count) // self._generation > first // self._generation
        features = self.features(texts(first, count, self.marks), first)
        return step_of(self.state, features, fingerprints, ends_generation=ends, recorded=1)

    def apply(self, step: Step) -> None:
        """Apply a step."""
        state = self.state
        writes = list(step_writes(state.store, state.index, state.progress, step))
        change = Change([step], writes, state.progress, state.epoch_state)
        state.apply(change, {}, None)

    def question(self, number: int) -> "Question":
        """Return a batch as a stream would have it: new articles, and copies of entries of all ages."""
        chance = np.random.default_rng(number)
        copied = round((1 - INDEXED_SHARE) * BATCH)
        new = texts((1 << 40) + number * BATCH, BATCH - copied, self.marks)
        picks = chance.integers(len(self._originals), size=copied)
        places = [int(chance.integers(len(self._originals[pick][1]))) for pick in picks.tolist()]
        numbers = [self._originals[pick][0] + place for pick, place in zip(picks.tolist(), places, strict=True)]
        old = copies(np.array(numbers, np.uint64), self.marks, number)
        originals = np.array([self._originals[pick][1][place] for pick, place in zip(picks, places, strict=True)])
        sums = np.concatenate(
            [
                self.population.sums(BATCH - copied),
                self.population.copies(originals.astype(float), copies_of(_SIMILARITY)),
            ]
        )
        both = Texts(np.concatenate([new.landmarks, old.landmarks]), np.concatenate([new.sketches, old.sketches]))
        return Question(self.features(both, (1 << 41) + number * BATCH), *fingerprints_of(sums), numbers)

    def features(self, some: Texts, first: int) -> Features:
        """Return the features of texts; except for landmarks and sketches, they are unique to each text."""
        count = len(some.sketches)
        rule = landmark_rule(self.settings)
        numbers = np.arange(first, first + count, dtype=np.uint64)
        contents = np.array([_mixed(number) for number in numbers.tolist()], np.uint64)
        marks = np.pad(some.landmarks, ((0, 0), (0, rule.most - self.marks)))
        sizes = np.full(count, GRAMS)
        sketches = Sketches(some.sketches, np.full(count, some.sketches.shape[1]), sizes, marks, contents)
        of_numbers, of_places = (
            _small(contents, members, size)
            for members, size in ((_NUMBERS, self.settings.sketch.numbers), (_PLACES, self.settings.sketch.places))
        )
        return features_of(sketches, of_numbers, of_places)


@dataclass(frozen=True, slots=True)
class Question:
    """A batch to look up.

    Attributes:
        features: features of its articles: first new ones, then copies.
        fingerprints: shape (n,).
        sums: bit sums, shape (n, 64).
        originals: entry numbers of the copies' originals.
    """

    features: Features
    fingerprints: U64
    sums: I64
    originals: Sequence[int]


def _small(seeds: U64, members: int, size: int) -> SmallSketches:
    """Return sketches with so many members each."""
    places = np.arange(members, dtype=np.uint64)
    values = (seeds[:, np.newaxis] >> np.uint64(8)) * (places + np.uint64(3)) * np.uint64(0x9E3779B97F4A7C15)
    padded = np.full((len(seeds), size), PAD, np.uint32)
    padded[:, :members] = np.sort((values >> np.uint64(32)).astype(np.uint32), axis=1)
    return SmallSketches(padded, *np.full((2, len(seeds)), members))


def _mixed(number: int) -> int:
    return int(mix64(np.uint64(number)))
