"""Lines that sites put around their articles: learnt at the end of an epoch, they no longer count as content.

Knows the Deduplicator and streams made for these tests; which lines are considered is tested in test_lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from stream_dedup import Article, Decision, Deduplicator, Relation
from stream_dedup.index.changelog import CommitReader
from tests.engine.durable import Log, commits, contents, restored, written
from tests.engine.model import parts
from tests.engine.samples import settings

_EPOCH = 60
_SETTINGS = settings(idf={"epoch_articles": _EPOCH})
_OFF = settings(idf={"epoch_articles": _EPOCH}, text={"learn_lines": False})
_SITES = {
    "江边日报": (
        "江边日报网络版每天为您送上最新的本地消息！\n请把江边日报加入收藏，下次打开更方便。\n读者来信请寄江边路一号编辑部收。\n",
        "\n江边日报社版权页，网站备案中。\n看完别忘了点个赞，再分享给朋友们。",
    ),
    "山城晚报": (
        "您正在阅读的是山城晚报电子版的一篇文章。\n山城晚报，一座城市的傍晚。\n订阅电话全年开通，欢迎来电咨询。\n",
        "\n山城晚报新媒体中心制作发布。\n本栏目由市民出题，由晚报记者跑腿。",
    ),
}
_HAN = [chr(point) for point in range(0x4E00, 0x8FA5)]


def _story(chance: Random, sentences: int = 1) -> str:
    return "".join("".join(chance.choices(_HAN, k=30)) + "。" for _ in range(sentences))


def _framed(story: str, site: str) -> str:
    header, footer = _SITES[site]
    return f"{header}{story}{footer}"


def _stories(count: int, sentences: int = 1, seed: int = 5) -> list[str]:
    chance = Random(seed)
    return [_story(chance, sentences) for _ in range(count)]


def _stream(count: int, *, sentences: int = 1, seed: int = 5) -> list[Article]:
    """Return short stories of two sites in turn, in their frames."""
    sites = list(_SITES)
    return [
        Article(f"{seed}-{number}", _framed(story, sites[number % 2]), source=sites[number % 2])
        for number, story in enumerate(_stories(count, sentences, seed))
    ]


def _links(decisions: Sequence[Decision]) -> list[str | None]:
    return [decision.link.duplicate_of if decision.link else None for decision in decisions]


def _learnt() -> Deduplicator:
    """Return an engine after one epoch of articles of both sites."""
    engine = Deduplicator(settings=_SETTINGS)
    engine.add_batch(_stream(_EPOCH))
    return engine


def test_frames_attract_until_they_are_learnt() -> None:
    """In the first epoch all stories of a site are taken for copies of its first; in the second none is."""
    stream = _stream(2 * _EPOCH)
    with Deduplicator(settings=_SETTINGS) as engine:
        first, second = engine.process(stream[:_EPOCH]), engine.process(stream[_EPOCH:])
        assert _links(first.decisions) == [None, None, *(f"5-{number % 2}" for number in range(2, _EPOCH))]
        assert _links(second.decisions) == [None] * _EPOCH
        assert engine.learnt_lines() == sum(len(frame.split("\n")) - 1 for pair in _SITES.values() for frame in pair)
        assert (first.tally.without_lines, second.tally.without_lines) == (0, _EPOCH)


def test_reposts_are_found_with_and_without_a_frame() -> None:
    """A story indexed without its learnt frame is found in another site's frame, without one, and in its own."""
    with _learnt() as engine:
        stories = _stories(6, seed=9)
        engine.add_batch(
            [Article(f"s{n}", _framed(story, "江边日报"), source="江边日报") for n, story in enumerate(stories)]
        )
        for source, frame in (("山城晚报", "山城晚报"), ("", "江边日报"), ("转载网", "")):
            bodies = [_framed(story, frame) if frame else f"据悉，{story}" for story in stories]
            copies = engine.add_batch([Article(f"{source}{n}", body, source=source) for n, body in enumerate(bodies)])
            assert _links(copies) == [f"s{n}" for n in range(6)]
        again = engine.add_batch([Article(f"r{n}", _framed(story, "江边日报")) for n, story in enumerate(stories)])
        assert {decision.link and decision.link.relation for decision in again} == {Relation.EXACT}


def test_copies_are_found_across_the_switch() -> None:
    """A copy of an article that was indexed with its frame is found after the frame is learnt, with or without it."""
    with Deduplicator(settings=_SETTINGS) as engine:
        long = _stream(_EPOCH, sentences=12)
        assert _links(engine.add_batch(long)) == [None] * _EPOCH
        assert engine.learnt_lines() == 10
        cut = [replace(one, id=f"c{one.id}", body=one.body.replace("。", "。\n", 6)[:-80]) for one in long[:20]]
        bare = [
            replace(one, id=f"b{n}", source="", body=story)
            for n, (one, story) in enumerate(zip(long[:20], _stories(20, 12), strict=True))
        ]
        assert _links(engine.add_batch([*cut, *bare])) == [one.id for one in (*long[:20], *long[:20])]


@pytest.mark.parametrize("cuts", [set(range(1, 150)), {7, 50, 61, 119}, {90}], ids=["one by one", "some", "two"])
def test_batches_make_no_difference(cuts: set[int]) -> None:
    """Decisions, fingerprints and the lines learnt are those of the whole stream as one batch."""
    stream = [*_stream(70), *_stream(70, sentences=4, seed=6)]
    stream[30:30] = [*stream[:5], *(replace(one, body=f"{one.body}\n更正：另有一处有误。") for one in stream[5:10])]
    with Deduplicator(settings=_SETTINGS) as whole, Deduplicator(settings=_SETTINGS) as cut:
        expected = whole.add_batch(stream)
        assert [decision for part in parts(stream, cuts) for decision in cut.add_batch(part)] == expected  # type: ignore[arg-type]
        assert sorted(cut.state.epoch_state.lines.learnt.tolist()) == sorted(
            whole.state.epoch_state.lines.learnt.tolist()
        )
        assert sorted(cut.state.epoch_state.lines.packed().tolist()) == sorted(
            whole.state.epoch_state.lines.packed().tolist()
        )


def _batches(stream: list[Article]) -> Iterator[list[Article]]:
    return (stream[start : start + 25] for start in range(0, len(stream), 25))


def test_lines_are_restored_from_the_changelog() -> None:
    """A state replayed from the changelog, whole or compacted, is byte for byte the same and decides the same.

    Only where the changelog begins differs once it has lost its first records.
    """
    log, more = Log(), _stream(40, seed=8)
    with Deduplicator(settings=_SETTINGS) as live:
        written(live, log, list(_batches(_stream(145))))
        with restored(log, _SETTINGS, [2, 1]) as copy:
            assert contents(copy) == contents(live)
            log.compact(tombstones=False)
            with restored(log, _SETTINGS) as late:
                assert contents(late, starts=False) == contents(live, starts=False)
                expected = live.decide(more)
                assert [one.decide(more).decisions for one in (copy, late)] == [expected.decisions] * 2
                assert expected.tally.without_lines == 40
    assert len(list(commits(log, CommitReader(live.state.index.format)))) == 6


def test_lines_are_there_after_reopening(tmp_path: Path) -> None:
    """Lines that are learnt, or still being counted, are kept in the directory."""
    stream = _stream(100)
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        engine.add_batch(stream)
        learnt, counts = engine.learnt_lines(), sorted(engine.state.epoch_state.lines.packed().tolist())
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert (engine.learnt_lines(), sorted(engine.state.epoch_state.lines.packed().tolist())) == (learnt, counts)
        assert learnt == 10


def test_lines_are_counted_across_reopening(tmp_path: Path) -> None:
    """However often the directory is reopened between two epochs, the counts are those of an uninterrupted run."""
    stream = _stream(100)
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add_batch(stream)
        expected = sorted(engine.state.epoch_state.lines.packed().tolist())
    for start in range(0, 100, 9):
        with Deduplicator(tmp_path, _SETTINGS) as engine:
            engine.add_batch(stream[start : start + 9])
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert sorted(engine.state.epoch_state.lines.packed().tolist()) == expected
        assert engine.learnt_lines() == 10


def test_lines_of_a_story_count_once_in_a_batch_that_is_judged_in_parts() -> None:
    """A new text of an id ends what is judged together: its site's lines are known to the articles behind it."""
    story, other = (_framed(one, "江边日报") for one in _stories(2))
    texts = {"a": story, "its copy": story}
    stream = [Article(name, text, source="江边日报") for name, text in texts.items()]
    stream.insert(1, replace(stream[0], body=other))
    with Deduplicator(settings=_SETTINGS) as engine:
        assert len(engine.process(stream).change.steps) > 1
        assert {count for _, count in engine.state.epoch_state.lines.packed().tolist()} == {1}


def test_nothing_is_learnt_where_the_settings_say_so() -> None:
    """With `text.learn_lines = false`, frames attract forever, and no lines are counted or stored."""
    with Deduplicator(settings=_OFF) as engine:
        decisions = engine.add_batch(_stream(2 * _EPOCH))
        assert _links(decisions)[2:] == [f"5-{number % 2}" for number in range(2, 2 * _EPOCH)]
        assert (engine.learnt_lines(), len(engine.state.epoch_state.lines.packed())) == (0, 0)
        assert not [key for pairs in contents(engine).values() for key, _ in pairs if key.startswith(b"lines")]


def test_lines_are_learnt_of_a_host_and_within_a_scope() -> None:
    """If the source is unknown, the host stands in for it; what one scope learns is content in another."""
    with Deduplicator(settings=_SETTINGS) as engine:
        hosts = {"江边日报": "https://jiang.example/", "山城晚报": "https://shan.example/"}
        stream = [replace(one, source="", url=f"{hosts[one.source]}{one.id}", scope="甲") for one in _stream(70)]
        engine.add_batch(stream[:_EPOCH])
        assert engine.process(stream[_EPOCH:]).tally.without_lines == 10
        assert engine.process([replace(one, scope="") for one in stream[:50]]).tally.without_lines == 0


def test_story_that_a_site_repeats_teaches_nothing() -> None:
    """Thirty copies of a story, each shortened differently, and its corrections count as one article of the site."""
    story = [sentence + "。" for sentence in _story(Random(1), 9).split("。")[:-1]]
    chance = Random(2)
    cut = ["".join(story[place] for place in sorted(chance.sample(range(9), 7))) for _ in range(30)]
    corrected = ["".join([*story, f"更正第{number}处：原文此处有误。"]) for number in range(30)]
    stream = [Article(f"c{number}", body, source="江边日报") for number, body in enumerate(cut)]
    stream += [Article("c0", body, source="江边日报") for body in corrected]
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add_batch(stream)
        assert (engine.epoch.number, engine.learnt_lines()) == (1, 0)
        assert max(count for _, count in engine.state.epoch_state.lines.packed().tolist()) <= 9


def test_bulletins_of_a_site_stay_told_apart() -> None:
    """What fills a template's holes is content: bulletins stay unique, and each repost is linked to its own."""
    numbers, bulletins = iter(Random(4).sample(range(100, 1000), 600)), list[str]()
    for low, high, rain, wind, gust, damp in zip(*[numbers] * 6, strict=True):
        bulletins.append(
            f"市气象台今天早晨发布天气预报。今天白天到夜间多云转阵雨。最低气温{low}，最高气温{high}，降水量{rain}，"
            f"平均风速{wind}，阵风{gust}，湿度{damp}。请市民出门带好雨具，注意交通安全。"
        )
    with Deduplicator(settings=_SETTINGS) as engine:
        stream = [Article(f"w{number}", text, source="气象台") for number, text in enumerate(bulletins)]
        assert _links(engine.add_batch(stream)) == [None] * 100
        assert engine.learnt_lines() == 3
        copies = [
            Article(f"r{number}", f"本报讯（记者李明）{text}", source="晚报") for number, text in enumerate(bulletins)
        ]
        assert _links(engine.add_batch(copies)) == [f"w{number}" for number in range(100)]


def test_shells_of_a_site_are_bare() -> None:
    """A frame around nothing leaves nothing: it is unique each time and attracts no story of the site."""
    with _learnt() as engine:
        shells = [Article(f"e{number}", _framed("", "江边日报"), source="江边日报") for number in range(3)]
        short = Article("s", _framed("大桥今天通车。", "江边日报"), source="江边日报")
        other = Article("o", _framed("粮仓装满新麦。", "江边日报"), source="江边日报")
        found = engine.add_batch([*shells, short, other, replace(short, id="t")])
        assert _links(found) == [None] * 5 + ["s"]
