"""The planner reaches the recall, keeps the limits, and reports what cannot be reached."""

import re
from dataclasses import replace

import pytest

from stream_dedup.index.runs.bloom import empty_filter
from stream_dedup.index.runs.shelf import YOUNG_ENTRIES
from stream_dedup.planner import (
    STRANGERS,
    Limits,
    Model,
    Shape,
    Traffic,
    UnreachableError,
    cheapest,
    copies_of,
    costs,
    expectation_of,
)
from stream_dedup.planner.costs import HELD_WINDOWS, Space, entry_bytes, microseconds, space_of, weighed
from stream_dedup.planner.expect import kept_share, recalls
from stream_dedup.planner.lists import runs_of
from stream_dedup.settings import Settings, load_settings

MODEL = Model(copies_of(0.8), STRANGERS, Traffic(1e6, 0.55), Settings())
USUAL = Shape(8, 24, 128, 12)


@pytest.fixture(autouse=True)
def _few_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search only keys of 18 to 20 bits: each further length would take as long again."""
    monkeypatch.setattr("stream_dedup.planner.search._PREFIX_BITS", range(18, 21))


@pytest.mark.parametrize("recall", [0.5, 0.9, 0.95, 0.99])
def test_the_plan_reaches_the_recall_and_no_bit_further(recall: float) -> None:
    """The recall is reached, and would not be with a largest distance of one bit less."""
    planned = cheapest(recall, MODEL, Limits())
    nearer = replace(planned.shape, max_distance=planned.shape.max_distance - 1)
    assert planned.recall >= recall > expectation_of(nearer, MODEL).recall


def test_no_setting_that_is_tried_is_cheaper() -> None:
    """Of a sample of shapes that reach the recall, none costs less than the plan."""
    planned = cheapest(0.9, MODEL, Limits())
    for tables in (4, 8, 16):
        for probes in (8, 64, 512):
            other = expectation_of(Shape(tables, 20, probes, 13), MODEL)
            assert other.recall < 0.9 or other.cost >= planned.cost


@pytest.mark.slow
def test_a_higher_recall_costs_more() -> None:
    """Costs increase with the recall."""
    costs = [cheapest(recall, MODEL, Limits()).cost for recall in (0.6, 0.8, 0.9, 0.95, 0.99)]
    assert costs == sorted(costs)


def test_more_articles_cost_more() -> None:
    """Keys, blocks, postings, candidates, memory and disk: none decreases as the index grows."""
    small, large = (expectation_of(USUAL, replace(MODEL, traffic=Traffic(size, 0.55))) for size in (1e6, 1e7))
    assert small.keys < large.keys < 8 * 128
    assert large.postings == pytest.approx(10 * small.postings)
    assert large.candidates == pytest.approx(10 * small.candidates)
    assert small.blocks < large.blocks
    assert small.space.disk < large.space.disk
    assert small.space.memory < large.space.memory


def test_filters_are_those_of_the_runs() -> None:
    """With one frozen run in each of three generations, there are three filters for the keys of 8 tables."""
    traffic = Traffic(3 * YOUNG_ENTRIES / HELD_WINDOWS, 1.0)
    space = expectation_of(USUAL, replace(MODEL, traffic=traffic)).space
    assert space.filters == 3 * empty_filter(8 * YOUNG_ENTRIES).nbytes


def test_memory_holds_all_posting_lists() -> None:
    """Without landmarks, memory shrinks by at least their filters: 9 bits for each of 38 keys, 75% of them distinct."""
    without = replace(MODEL, settings=load_settings(flags=["landmarks.enabled=false"]))
    all_of_it, less = (expectation_of(USUAL, model).space for model in (MODEL, without))
    assert all_of_it.memory - less.memory == pytest.approx(all_of_it.lists - less.lists)
    assert all_of_it.lists - less.lists > MODEL.traffic.entries * 38 * 0.75 * 9 / 8
    assert less.lists > less.filters == all_of_it.filters


def test_page_cache_holds_what_look_ups_map() -> None:
    """With the default settings, `make bench-scale` measured 316 bytes per entry mapped at ten million entries."""
    defaults = Settings().simhash
    shape = Shape(defaults.tables, defaults.prefix_bits, defaults.probes, defaults.max_distance)
    space = expectation_of(shape, replace(MODEL, traffic=Traffic(1e7 / HELD_WINDOWS, 1.0))).space
    assert space.cached / 1e7 == pytest.approx(316, rel=0.1)


def test_memory_and_disk_hold_what_the_settings_and_the_traffic_say() -> None:
    """A larger block cache takes its size; a copy has records on disk, and in reserve an entry there too."""
    plan, traffic, settings = USUAL.plan, Traffic(1e6, 0.5), MODEL.settings
    before = space_of(plan, traffic, settings)
    roomy = load_settings(flags=[f"state.cache_bytes={settings.state.cache_bytes + 10**9}"])
    assert space_of(plan, traffic, roomy).memory - before.memory == pytest.approx(1e9)
    reserved = space_of(plan, replace(traffic, reserve_share=0.2), settings)
    assert reserved.memory == before.memory
    assert 1 < (reserved.disk - before.disk) / (HELD_WINDOWS * 2e5 * entry_bytes(settings)) < 1.1
    copies = space_of(plan, Traffic(2e6, 0.25), settings)
    assert (copies.memory, copies.tables) == (before.memory, before.tables)
    assert 0 < copies.disk - before.disk < HELD_WINDOWS * 1e6 * entry_bytes(settings)


@pytest.mark.parametrize(
    ("price", "times"),
    [
        ("_ARTICLE_US", 1),
        ("_PROBE_US", 300),
        ("_ASK_US", 300 * 7),
        ("_KEY_US", 50),
        ("_BLOCK_US", 40),
        ("_POSTING_US", 30),
        ("_ENTRY_US", 2),
        ("_INSERT_US", 8),
    ],
)
def test_each_step_is_paid_as_often_as_it_is_taken(price: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a microsecond more for each, the time grows by how many there are; each run is asked for each probe."""

    def time_us() -> float:
        return microseconds(tables=8, probes=300, runs=7, keys=50, blocks=40, postings=30, candidates=2)

    before = time_us()
    monkeypatch.setattr(costs, price, getattr(costs, price) + 1)
    assert time_us() - before == pytest.approx(times)


def test_time_memory_and_disk_are_weighed_by_their_rent() -> None:
    """A core, which judges an article in 170 us, costs as much as 8 GB of memory or 250 GB of disk."""
    memory, disk = Space(0, 0, 8e9, 0, 0, 0), Space(0, 0, 0, 0, 0, 250e9)
    assert weighed(170, Space(0, 0, 0, 0, 0, 0)) == pytest.approx(weighed(0, memory)) == pytest.approx(weighed(0, disk))


def test_time_is_taken_for_new_articles_alone() -> None:
    """Of the stream, 55% are new; the others are proved to be copies before the tables are looked up."""
    expected = expectation_of(USUAL, MODEL)
    assert expected.cost - weighed(0.0, expected.space) == pytest.approx(0.55 * expected.time_us)


def test_time_is_that_of_all_probes_in_all_runs() -> None:
    """Each of 8 tables is probed 128 times, and each run asked; the tables take up all that an entry is said to."""
    expected, entries = expectation_of(USUAL, MODEL), MODEL.traffic.entries
    runs = sum(count for _, count in runs_of(entries))
    read = (expected.keys, expected.blocks, expected.postings, expected.candidates)
    assert expected.time_us == pytest.approx(microseconds(8, 8 * 128, runs, *read))
    assert expected.disk_per_entry * entries == pytest.approx(expected.space.tables)


def test_each_key_that_a_run_holds_is_read_from_a_block() -> None:
    """With one article per commit, hardly two keys share a block; a table's own key may be in no run."""
    alone = replace(MODEL, settings=load_settings(flags=["commit.articles=1"]))
    expected, runs = expectation_of(USUAL, alone), sum(count for _, count in runs_of(MODEL.traffic.entries))
    assert 0.95 * (expected.keys - 8) <= expected.blocks <= runs * expected.keys


def test_an_article_s_own_keys_are_always_looked_up() -> None:
    """With one entry in the index, only each table's own key remains to be looked up, and no block is read."""
    alone = expectation_of(USUAL, replace(MODEL, traffic=Traffic(0.5, 1.0)))
    assert alone.keys == pytest.approx(8, abs=0.5)
    assert alone.blocks == pytest.approx(0, abs=0.5)


def test_recall_grows_with_the_largest_distance_and_with_probes() -> None:
    """A larger distance never lowers the recall, nor do more probes."""
    by_distance = recalls(8, 20, 64, MODEL)
    assert (by_distance[1:] >= by_distance[:-1]).all()
    assert recalls(8, 20, 256, MODEL)[14] > by_distance[14] > recalls(8, 20, 4, MODEL)[14]


def test_lists_that_are_cut_lose_originals() -> None:
    """If lists are 32 times as long as the cap, one original in 32 is among the newest and is kept."""
    even = replace(MODEL, strangers=replace(STRANGERS, flips=(0.5,), weights=(1.0,)))
    entries = 2**16 * 64 * 32
    crowded = replace(even, traffic=Traffic(entries / HELD_WINDOWS, 1.0))
    assert kept_share(16, crowded) == pytest.approx(1 / 32)
    assert kept_share(24, even) == 1
    assert recalls(8, 16, 64, crowded)[14] == pytest.approx(recalls(8, 16, 64, even)[14] / 32)


def test_limits_are_kept() -> None:
    """With a quarter less disk for the tables, the plan stays within the limit."""
    free = cheapest(0.9, MODEL, Limits())
    disk = free.space.disk - free.space.tables / 4
    tight = cheapest(0.9, MODEL, Limits(disk=disk))
    assert tight.space.disk <= disk
    assert tight.cost >= free.cost


def test_a_recall_out_of_reach_is_refused_with_the_best() -> None:
    """A largest distance of 32 bits loses few copies, but keys of 18 bits lose some, so 0.99999 is out of reach."""
    with pytest.raises(UnreachableError, match=r"0\.99999 cannot be reached: the best of all settings") as refused:
        cheapest(0.99999, replace(MODEL, copies=copies_of(0.5)), Limits())
    assert refused.value.best is not None
    assert recalls(32, 18, 4096, replace(MODEL, copies=copies_of(0.5)))[-1] <= refused.value.best.recall < 0.99999


def test_limits_are_told_of_where_there_are_any() -> None:
    """If limits keep the recall out of reach, the message says that more memory or disk may help."""
    with pytest.raises(UnreachableError, match=r"reached within the limits: the best within them is 0\."):
        cheapest(0.99999, replace(MODEL, copies=copies_of(0.5)), Limits(memory=1e15))


def test_limits_that_nothing_keeps_are_refused() -> None:
    """An index of a million articles does not fit into a megabyte; within the limits that are told instead, one is."""
    with pytest.raises(UnreachableError, match="no settings at all stay within them") as refused:
        cheapest(0.5, MODEL, Limits(memory=1e6))
    told = re.search(r"the smallest take ([\d.]+) GB of memory and ([\d.]+) GB of disk", str(refused.value))
    assert told
    memory, disk = (float(size) * 1e9 for size in told.groups())
    with pytest.raises(UnreachableError) as least:
        cheapest(0.9999, MODEL, Limits(memory, disk))
    assert least.value.best
    assert least.value.best.space.memory > memory - 1e7
