"""The planner's model of distances, recall and unrelated articles agrees with what can be computed exactly."""

from itertools import pairwise
from math import comb, exp

import numpy as np
import pytest
from scipy import stats

from stream_dedup.cli.quantity import MOST, MOST_ARTICLES, article_count, quantity
from stream_dedup.counted import counted
from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.index.entries.entries import EntryFormat
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import probe_keys, table_keys
from stream_dedup.planner import STRANGERS, FlipMixture, copies_of
from stream_dedup.planner.costs import TYPICAL_NAME, TYPICAL_NUMBERS, TYPICAL_PLACES, entry_bytes
from stream_dedup.planner.distances import fitted
from stream_dedup.planner.found import FARTHEST, MOST_PROBES, found_pairs
from stream_dedup.planner.lists import TYPICAL_GRAMS
from stream_dedup.planner.strangers import stranger_hits
from stream_dedup.settings import load_settings

RANDOM = FlipMixture((0.5,), (1.0,))
# Equal weights for all simulated flip probabilities.
EVEN = FlipMixture(tuple(np.linspace(0.01, 0.55, 28).tolist()), (1 / 28,) * 28)


def test_distances_of_one_flip_probability_are_binomial() -> None:
    """A mixture gives the weighted binomial distributions of 64 bits, by SciPy."""
    mixture = FlipMixture((0.1, 0.5), (0.25, 0.75))
    numbers = np.arange(65)
    expected = 0.25 * stats.binom.pmf(numbers, 64, 0.1) + 0.75 * stats.binom.pmf(numbers, 64, 0.5)
    assert mixture.distances() == pytest.approx(expected, abs=1e-12)


def test_random_fingerprints_agree_in_a_prefix_once_in_two_to_its_bits() -> None:
    """The keys of random fingerprints are evenly distributed."""
    assert RANDOM.agreement(24) == pytest.approx(2**-24)


def test_agreement_is_that_of_all_choices_of_bits() -> None:
    """A pair at distance d agrees in C(64 - d, b) of the C(64, b) sets of b bits; this is averaged over distances."""
    shares = [comb(64 - distance, 24) / comb(64, 24) for distance in range(65)]
    assert STRANGERS.agreement(24) == pytest.approx(float(STRANGERS.distances() @ shares), rel=1e-9)


def test_a_mixture_is_found_again_in_its_distances() -> None:
    """Fitting the distances of a known mixture reproduces each of them to within a thousandth."""
    known = FlipMixture((0.08, 0.3, 0.5), (0.01, 0.09, 0.9))
    again = fitted((known.distances() * 1e9).astype(np.int64))
    assert again.distances() == pytest.approx(known.distances(), abs=1e-3)
    assert again.distances()[:10].sum() == pytest.approx(known.distances()[:10].sum(), rel=0.02)


def test_no_pair_cannot_be_fitted() -> None:
    """Without any pair, fitting is refused with a message."""
    with pytest.raises(ValueError, match="no pairs of texts"):
        fitted(np.zeros(65, np.int64))


@pytest.mark.parametrize(("similarity", "mean"), [(0.5, 13.51), (0.8, 7.00), (0.85, (7.00 + 4.73) / 2), (0.95, 3.48)])
def test_copies_have_the_measured_mean_distance(similarity: float, mean: float) -> None:
    """The mean is the measured one, and half-way between two measurements it is their mean."""
    distances = copies_of(similarity).distances()
    assert distances.sum() == pytest.approx(1)
    assert float(distances @ np.arange(65)) == pytest.approx(mean, rel=0.01)


def test_copies_are_beta_binomial() -> None:
    """For four fifths of the text, it is SciPy's beta-binomial with the same mean and correlation of two bits."""
    mean, size = 7.00 / 64, 1 / 0.012 - 1
    expected = stats.betabinom.pmf(np.arange(65), 64, mean * size, (1 - mean) * size)
    assert copies_of(0.8).distances() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("similarity", [0.3, 0.49, 0.96, 1.0])
def test_similarities_that_were_not_measured_are_refused(similarity: float) -> None:
    """The message gives the value and the bounds."""
    with pytest.raises(ValueError, match=rf"{similarity:g} is out of bounds.*0.5 to 0.95"):
        copies_of(similarity)


@pytest.mark.parametrize("tables", [1, 8, 16, 32])
def test_all_keys_of_a_table_find_every_pair(tables: int) -> None:
    """A key of 12 bits has 4,096 values: with as many probes nothing is missed at any distance."""
    assert (found_pairs(12).shares(tables, MOST_PROBES, EVEN) == 1).all()


@pytest.mark.parametrize(("tables", "prefix_bits"), [(16, 16), (8, 16), (8, 24), (32, 20), (5, 20)])
def test_pairs_within_the_guaranteed_distance_are_found_without_flips(tables: int, prefix_bits: int) -> None:
    """`TablePlan.guaranteed_distance` and the simulation agree: up to it one probe finds all pairs, beyond it fewer."""
    guaranteed = TablePlan(tables, prefix_bits).guaranteed_distance()
    shares = found_pairs(prefix_bits).shares(tables, 1, EVEN)
    assert (shares[: guaranteed + 1] == 1).all()
    assert shares[FARTHEST] < 1


@pytest.mark.parametrize("prefix_bits", [16, 20, 24])
def test_one_probe_of_one_table_finds_what_combinatorics_says(prefix_bits: int) -> None:
    """None of d flips is among b given bits with probability C(64 - b, d) / C(64, d)."""
    shares = found_pairs(prefix_bits).shares(1, 1, EVEN)
    for distance in range(1, 13):
        expected = comb(64 - prefix_bits, distance) / comb(64, distance)
        error = (expected * (1 - expected) / 300) ** 0.5
        assert shares[distance] == pytest.approx(expected, abs=4 * error + 0.004)


def test_more_probes_or_tables_never_find_less() -> None:
    """Recall does not decrease at any distance; each set of tables here includes the smaller ones."""
    pairs = found_pairs(20)
    by_probes = [pairs.shares(8, probes, EVEN) for probes in (1, 2, 16, 128, 1024, 4096)]
    by_tables = [pairs.shares(tables, 64, EVEN) for tables in (1, 2, 4, 8, 16, 32)]
    for less, more in [*pairwise(by_probes), *pairwise(by_tables)]:
        assert (more >= less).all()
        assert more.sum() > less.sum()


def test_random_strangers_stand_under_each_key_alike() -> None:
    """Of n random fingerprints, n / 2^b are under a key, which is occupied with probability 1 - e^(-n / 2^b)."""
    met = stranger_hits(RANDOM, 20, 1e6, 0.0)
    density = 1e6 / 2**20
    assert met.postings[127] == pytest.approx(128 * density)
    assert met.keys[127] == pytest.approx(128 * (1 - exp(-density)))


def test_filters_add_keys_and_no_strangers() -> None:
    """A filter reports its share of the free keys, e^(-n / 2^b), as occupied, but there are no entries under them."""
    met, free = stranger_hits(RANDOM, 20, 1e6, 0.01), exp(-1e6 / 2**20)
    assert met.keys[127] == pytest.approx(128 * (1 - free + 0.01 * free))
    assert met.postings[127] == pytest.approx(128 * 1e6 / 2**20)


def test_all_keys_of_a_table_lead_to_every_stranger_once() -> None:
    """A key of 12 bits has 4,096 values; all of them together lead to every entry once, however related."""
    assert stranger_hits(STRANGERS, 12, 5_000.0, 0.0).postings[-1] == pytest.approx(5_000)


def test_own_key_leads_to_those_that_agree_in_it() -> None:
    """An article's own key leads on average to n (1 - q)^b unrelated ones, with the flip probability q.

    With 48 drawn articles, the mean of a probability whose logarithm varies is only accurate to a tenth.
    """
    related = FlipMixture((0.05,), (1.0,))
    assert stranger_hits(related, 16, 1e6, 0.0).postings[0] == pytest.approx(1e6 * 0.95**16, rel=0.1)


def test_likely_flips_are_tried_first() -> None:
    """Early probes lead to more related articles than late ones, and the article's own key to most."""
    gains = np.diff(stranger_hits(FlipMixture((0.15,), (1.0,)), 24, 1e6, 0.0).postings, prepend=0.0)
    assert gains[:128].sum() > 0.5 * 1e6 * sum(comb(24, k) * 0.15**k * 0.85 ** (24 - k) for k in range(3)) * 0.5
    assert gains[0] == gains.max()
    assert gains[1:129].mean() > 3 * gains[1000:].mean()


@pytest.mark.parametrize(
    ("text", "value"),
    [("50M", 50e6), ("1_000_000", 1e6), ("2.5e6", 2.5e6), ("1,000", 1e3), ("4G", 4e9), (" 3 k ", 3e3), ("1b", 1e9)],
)
def test_quantities(text: str, value: float) -> None:
    """Numbers are read as people write them."""
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "many", "-5", "0", "5X", "1e", "M", "5 5", "nan", "inf"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """The message gives the value and shows what is allowed."""
    with pytest.raises(ValueError, match="is not a positive number: write 50M"):
        quantity(text)


@pytest.mark.parametrize("text", ["1e30", "1e400", "1.1T", "1000000000001"])
def test_more_articles_than_there_can_be_are_refused(text: str) -> None:
    """The message gives the value and the largest allowed one, a trillion, which is accepted."""
    with pytest.raises(ValueError, match=f"'{text}' is more than 1,000,000,000,000: "):
        article_count(text)
    assert article_count("1T") == MOST_ARTICLES == 1e12


def test_part_of_an_article_is_refused() -> None:
    """A window of 0.3 articles is a mistake, and would be planned as an empty one."""
    with pytest.raises(ValueError, match=r"'0\.3' is less than one article"):
        article_count("0.3")
    assert article_count("1") == 1


def test_numbers_are_told_with_what_they_count() -> None:
    """One is singular, and larger numbers have commas."""
    told = [counted(count, "entry", "entries") for count in (0, 1, 2, 1000)]
    assert told == ["0 entries", "1 entry", "2 entries", "1,000 entries"]
    assert [counted(count, "record") for count in (1, 2)] == ["1 record", "2 records"]


def test_bytes_are_bounded_too() -> None:
    """Infinite quantities are refused, while terabytes are accepted."""
    with pytest.raises(ValueError, match="'1e400' is more than 1,000,000,000,000,000,000: "):
        quantity("1e400")
    assert quantity("200T") == 2e14 < MOST


@pytest.mark.parametrize(("tables", "prefix_bits", "probes"), [(8, 24, 128), (3, 18, 512), (12, 20, 8)])
def test_the_simulation_agrees_with_the_probing_of_the_index(tables: int, prefix_bits: int, probes: int) -> None:
    """When pairs of copies are looked up by `probe_keys`, as many are found as simulated."""
    chance, mixture = np.random.default_rng(5), copies_of(0.7)
    flips = chance.choice(mixture.flips, (2_000, 1), p=mixture.weights)
    correlations = np.cos(np.pi * flips)
    copies = chance.standard_normal((2_000, 64))
    originals = correlations * copies + np.sqrt(1 - correlations**2) * chance.standard_normal((2_000, 64))
    powers = np.uint64(1) << np.arange(64, dtype=np.uint64)
    stored, asked = (((sums > 0) * powers).sum(axis=1, dtype=np.uint64) for sums in (originals, copies))
    plan = TablePlan(tables, prefix_bits)
    keys = probe_keys(plan, asked, (copies * 1e6).astype(np.int64), probes)
    own = table_keys(plan.prefixes(stored))
    found = [np.isin(own[i], looked_up).any() for i, looked_up in enumerate(keys)]
    distances = np.bitwise_count(stored ^ asked)
    near = distances <= FARTHEST
    shares = found_pairs(prefix_bits).shares(tables, probes, mixture)
    assert near.mean() > 0.99
    assert np.array(found)[near].mean() == pytest.approx(shares[distances[near]].mean(), abs=0.02)


@pytest.mark.parametrize("size", [64, 128, 256, 512])
def test_entries_take_what_is_planned(size: int) -> None:
    """Packed entries of uniform hashes have the planned size to within 2%, for any sketch size."""
    settings, rng, count = (
        load_settings(flags=[f"sketch.size={size}", "landmarks.most_keys=64"]),
        np.random.default_rng(4),
        100,
    )
    layout = EntryFormat(size, settings.sketch.numbers, settings.sketch.places, landmark_rule(settings))
    fixed = np.zeros(count, layout.layout)
    for name, of, bits, kept in (
        ("sketch", TYPICAL_GRAMS, 24, size),
        ("numbers", TYPICAL_NUMBERS, 32, TYPICAL_NUMBERS),
        ("places", TYPICAL_PLACES, 32, TYPICAL_PLACES),
    ):
        fixed[name][:, :kept] = np.sort(rng.integers(0, 2**bits, (count, of), dtype=np.uint32), axis=1)[:, :kept]
    fixed["fingerprint"], fixed["content"] = rng.integers(0, 2**63, (2, count), dtype=np.uint64)
    fixed["window_ms"], fixed["cluster"] = 1_790_000_000_000, 5_000_000
    fixed["size"], fixed["length"] = TYPICAL_GRAMS, size
    fixed["number_size"] = fixed["number_length"] = TYPICAL_NUMBERS
    fixed["place_size"] = fixed["place_length"] = TYPICAL_PLACES
    packed = layout.pack(fixed, [b"n" * TYPICAL_NAME] * count)
    assert sum(map(len, packed)) / count == pytest.approx(entry_bytes(settings), rel=0.02)
