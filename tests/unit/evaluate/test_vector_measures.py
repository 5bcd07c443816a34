"""Cosine and SimHash match scikit-learn, ten lines of Python, and Charikar's worked steps."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import cosine_similarity

from stream_dedup.evaluate.features.bags import Bags, bags
from stream_dedup.evaluate.quality.tally import BINS
from stream_dedup.evaluate.similarity import cosine, simhash
from stream_dedup.fingerprint import simhash as engine

_MATRICES = st.lists(st.lists(st.integers(-2, 9), min_size=6, max_size=6), min_size=1, max_size=6)


def _random_bags(seed: int) -> Bags:
    """Return 30 bags of weighted members with random 64-bit hashes."""
    generator = random.Random(seed)
    keys = [generator.getrandbits(64) for _ in range(80)]
    sizes = [generator.randrange(1, 60) for _ in range(30)]
    members = [key for size in sizes for key in generator.sample(keys, size)]
    weights = [generator.randrange(1, 5000) / 1024 for _ in members]
    return bags(np.cumsum([0, *sizes]), np.array(members, np.uint64), np.array(weights))


@given(_MATRICES)
def test_cosine_is_that_of_scikit_learn(rows: list[list[int]]) -> None:
    """The cosine of weighted vectors is scikit-learn's; below 0 it counts as 0."""
    matrix = np.array(rows, np.float64)
    data = cosine.unit_vectors(Bags(csr_array(matrix), np.arange(1, 7, dtype=np.uint64)))
    expected = np.maximum(cosine_similarity(matrix), 0)
    assert cosine.cosine(data, slice(0, len(rows))) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("weight", ["one", "any"])
def test_cosine_of_a_long_text_with_itself_is_1(weight: str) -> None:
    """Within a twentieth of a bin of the tally; thousands of small products in single precision add up to less."""
    generator, sizes = random.Random(5), (3_000, 30_000)
    members = [generator.getrandbits(64) for size in sizes for _ in range(size)]
    weights = [1.0 if weight == "one" else generator.randrange(1, 5000) / 1024 for _ in members]
    long = bags(np.cumsum([0, *sizes]), np.array(members, np.uint64), np.array(weights))
    block = cosine.cosine(cosine.unit_vectors(long), slice(0, 2))
    assert block.diagonal() == pytest.approx(1, abs=0.05 / BINS)


def test_worked_example_of_charikar() -> None:
    """Weights 4 and 5 on 100101 and 101011 give the sums 9 -9 1 -1 1 9 and the fingerprint 101011."""
    words = bags(np.array([0, 2]), np.array([0b100101, 0b101011], np.uint64), np.array([4.0, 5.0]))
    assert simhash.fingerprints(words, bits=32).tolist() == [0b101011]
    sums = np.array([9, 1, -1, 1, -9, 9, *[-9] * 26])
    assert simhash.directions(words, bits=32)[0] == pytest.approx(sums / np.linalg.norm(sums), abs=1e-6)


def test_worked_hamming_distance() -> None:
    """10101 and 00110 differ in 3 bits: similarity 1 - 3/64, or 1 - 3/32 with 32 bits."""
    values = np.array([0b10101, 0b00110], np.uint64)
    assert simhash.hamming(values, slice(0, 2), bits=64).tolist() == [[1, 1 - 3 / 64], [1 - 3 / 64, 1]]
    assert simhash.hamming(values, slice(0, 1), bits=32).tolist() == [[1, 1 - 3 / 32]]


@pytest.mark.parametrize("bits", [32, 64])
def test_hamming_is_that_of_the_engine(bits: int) -> None:
    """Fingerprints and distances are the engine's; the 32-bit variant uses the lower half."""
    words = _random_bags(bits)
    expected, _ = engine.simhash(words.offsets(), words.members(), words.matrix.data)
    values = [int(value) & (1 << bits) - 1 for value in expected]
    block = simhash.hamming(simhash.fingerprints(words, bits), slice(0, 30), bits)
    assert block.tolist() == [[1 - engine.hamming(a, b) / bits for b in values] for a in values]


@pytest.mark.parametrize("bits", [32, 64])
def test_simhash_cosine_is_that_of_the_engine(bits: int) -> None:
    """It is the cosine of the sums before the signs are taken; below 0 it counts as 0."""
    words = _random_bags(bits)
    _, sums = engine.simhash(words.offsets(), words.members(), words.matrix.data)
    expected = [[max(0.0, engine.cosine(a[:bits], b[:bits])) for b in sums] for a in sums]
    assert simhash.cosine(simhash.directions(words, bits), slice(0, 30)) == pytest.approx(np.array(expected), abs=1e-6)
