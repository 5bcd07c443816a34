"""An evaluation scores the right pairs, keeps finished results, and survives the failure of one algorithm."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stream_dedup.article import Article
from stream_dedup.evaluate.engine import Configuration, configurations
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.evaluate.labels import read_labelled, write_labelled
from stream_dedup.evaluate.replaced import ReplacedOptions
from stream_dedup.evaluate.reposts import RepostSettings, with_reposts
from stream_dedup.evaluate.results import AlgorithmResult, Evaluation, KindCount, Seconds
from stream_dedup.evaluate.runner import jobs as jobs_module
from stream_dedup.evaluate.runner import run as run_module
from stream_dedup.evaluate.runner import tasks as tasks_module
from stream_dedup.evaluate.runner.folder import OtherRunError, kept_evaluation
from stream_dedup.evaluate.runner.plan import Plan
from stream_dedup.evaluate.runner.run import evaluate, summary_of
from stream_dedup.evaluate.runner.tasks import WorkerFiles
from stream_dedup.evaluate.runner.workers import Job
from stream_dedup.settings import EngineSettings, FieldSettings, InputSettings
from tests.unit.evaluate.fakes import CALLS, FIVE, Broken, Letters, Table, five
from tests.unit.evaluate.made import measured

Run = Callable[[Plan], Evaluation]


class Heard:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.stages: dict[str, int] = {}
        self.told: list[tuple[str, str]] = []
        self.lacking: dict[str, str] = {}

    def lacks(self, reasons: Mapping[str, str]) -> None:
        """Record the call, which comes before any stage."""
        assert not self.stages
        self.lacking |= reasons

    def begin(self, stage: str, jobs: int) -> None:
        """Record the call."""
        self.stages[stage] = jobs

    def done(self, name: str, note: str) -> None:
        """Record the call."""
        self.told.append((name, note))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a plan on the five articles, in the test's own directory."""
    CALLS.clear()
    return lambda plan: evaluate(plan, five(), tmp_path / "out", Heard())


def _plan(*algorithms: Table, **options: object) -> Plan:
    return Plan({one.name: one for one in algorithms}, jobs=1, **options)  # type: ignore[arg-type]  # by name


def test_scores_are_those_of_the_pairs(run: Run) -> None:
    """At 0.5, three pairs are found: two of the three copies, and one wrong; the overlapping pair does not count."""
    measured = run(_plan(Table("table", FIVE))).measured[0]
    score = measured.given.score
    assert (score.true_positives, score.false_positives, score.false_negatives) == (2, 1, 1)
    assert (score.precision, score.recall) == pytest.approx((2 / 3, 2 / 3))
    recalls = {(one.kind, one.strength): one.recall for one in measured.given.kinds}
    assert recalls == {("punct", None): 1.0, ("cut", 0.5): 0.0}
    assert measured.candidates == 2.0


def test_articles_of_two_scopes_are_no_question(tmp_path: Path) -> None:
    """Articles of different scopes are never compared, however similar, and may share an id."""
    scopes = ("甲", "甲", "乙", "乙", "乙")
    ids = ("one", "two", "one", "two", "three")
    articles = [
        LabelledArticle(replace(each.article, id=name, scope=scope), "k")
        for each, name, scope in zip(five().articles, ids, scopes, strict=True)
    ]
    scoped = replace(five(), articles=articles, overlapping=np.empty((0, 2), np.int64))
    measured = evaluate(_plan(Table("all", ((1.0,) * 5,) * 5)), scoped, tmp_path, Heard()).measured[0]
    score = measured.given.score
    assert (score.true_positives, score.false_positives, score.false_negatives) == (4, 0, 0)


@pytest.mark.slow
def test_engine_is_asked_within_scopes(bodies: list[str], tmp_path: Path) -> None:
    """Reposts of the same articles in two scopes are each found in their own scope, under their own names."""
    texts = sorted(bodies, key=len)[-4:]
    articles = [Article(str(n), body, scope=scope) for scope in ("甲", "乙") for n, body in enumerate(texts)]
    made = with_reposts(articles, RepostSettings(edits=("boiler:2",), share=1.0))
    assert len({one.article.name for one in made.articles}) == len(made.articles) > len(articles)
    plan = _plan(configurations={"engine/default": configurations()["engine/default"]})
    score = evaluate(plan, made, tmp_path, Heard()).measured[0].given.score
    assert (score.precision, score.recall) == (1.0, 1.0)


def test_set_is_told_by_its_numbers() -> None:
    """Stories of two scopes are two, whatever their name; copies are counted by edit and strength."""
    articles = [*five().articles[:4], _of_scope(five().articles[0], "x")]
    told = summary_of(replace(five(), articles=articles), "0123")
    assert (told.name, told.digest, told.articles, told.clusters) == ("five", "0123", 5, 3)
    assert (told.pairs, told.overlapping) == (3, 1)
    assert told.kinds == (KindCount("cut", 0.5, 1), KindCount("punct", None, 1))


def test_seconds_are_those_of_all_parts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that each measured call takes a second of, words take three, features one and comparisons three."""
    monkeypatch.setattr(tasks_module, "time", SimpleNamespace(process_time=iter(range(100)).__next__))
    monkeypatch.setattr(jobs_module, "_CUT_ROWS", 2)
    monkeypatch.setattr(jobs_module, "_COMPARE_ROWS", 4)
    monkeypatch.setattr(tasks_module, "_ROWS", 2)
    tables = Table("words", FIVE, segmenter="letters"), Table("characters", FIVE)
    seconds = {one.named.name: one.seconds for one in run(_plan(*tables, segmenters={"letters": Letters()})).measured}
    assert seconds == {"words": Seconds(3, 1, 3), "characters": Seconds(None, 1, 3)}


def test_best_threshold_is_looked_for(run: Run) -> None:
    """From 0.4 up, all copies and one wrong pair are found: F1 = 2 x 3 / (2 x 3 + 1), the highest at any threshold."""
    measured = run(_plan(Table("table", FIVE))).measured[0]
    assert measured.best.score.f1 == pytest.approx(6 / 7)
    assert 0.1 < measured.best.score.threshold <= 0.4
    assert {one.recall for one in measured.best.kinds} == {1.0}


def test_threshold_of_the_user_counts(run: Run) -> None:
    """From 0.85 up, one pair is found, and it is right."""
    score = run(_plan(Table("table", FIVE), threshold=0.85)).measured[0].given.score
    assert (score.true_positives, score.false_positives) == (1, 0)


def test_best_comes_first(run: Run) -> None:
    """Results are ordered by their best F1."""
    unlike = tuple(tuple(float(i == k) for k in range(5)) for i in range(5))
    evaluation = run(_plan(Table("blind", unlike), Table("table", FIVE)))
    assert [one.named.name for one in evaluation.measured] == ["table", "blind"]


def test_one_that_breaks_stops_no_other(run: Run) -> None:
    """A failing algorithm is reported as failed with its message; the others have results."""
    evaluation = run(_plan(Broken("broken", FIVE), Table("table", FIVE)))
    assert [one.named.name for one in evaluation.measured] == ["table"]
    failure = evaluation.unmeasured[0]
    assert (failure.named.name, failure.failed) == ("broken", True)
    assert failure.reason == "ArithmeticError: no similarities of 5 articles from 0 on"


def test_missing_segmenter_is_no_failure(tmp_path: Path) -> None:
    """An algorithm whose segmenter is not installed is reported as unavailable, with the reason, and is not run.

    The reason is told before anything else is run.
    """
    CALLS.clear()
    segmenter, heard = Letters(reason="letters not installed: learn to read"), Heard()
    plan = _plan(Table("table", FIVE, segmenter="letters"), segmenters={"letters": segmenter})
    evaluation = evaluate(plan, five(), tmp_path, heard)
    assert heard.lacking == {"letters": segmenter.reason}
    assert [(one.reason, one.failed) for one in evaluation.unmeasured] == [(segmenter.reason, False)]
    assert CALLS["table"] == 0


def test_results_are_kept(run: Run) -> None:
    """Running the same evaluation again computes nothing and gives the same results."""
    first, second = run(_plan(Table("table", FIVE))), run(_plan(Table("table", FIVE)))
    assert CALLS["table"] == 1
    assert first == second


def test_only_what_is_new_is_computed(run: Run) -> None:
    """Another selection or threshold computes only what is missing, and segments the words only once."""
    letters = Letters()
    cutting = {"segmenters": {"letters": letters}}
    run(_plan(Table("table", FIVE, segmenter="letters"), **cutting))
    asked = list(letters.asked)
    run(_plan(Table("table", FIVE, segmenter="letters"), Table("other", FIVE, segmenter="letters"), **cutting))
    assert (CALLS["table"], CALLS["other"]) == (1, 1)
    assert letters.asked == asked
    run(_plan(Table("table", FIVE, segmenter="letters"), threshold=0.7, **cutting))
    assert CALLS["table"] == 2


def test_other_code_computes_anew(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of other source code is not reused."""
    run(_plan(Table("table", FIVE)))
    monkeypatch.setattr(run_module, "digest_of_code", lambda: "other")
    run(_plan(Table("table", FIVE)))
    assert CALLS["table"] == 2


def test_other_release_of_a_segmenter_computes_anew(run: Run) -> None:
    """Words and results of another release are not reused; algorithms without that segmenter are not affected."""
    old, new = Letters(), Letters(release="2.0")
    for letters in (old, new):
        tables = Table("table", FIVE, segmenter="letters"), Table("characters", FIVE)
        run(_plan(*tables, segmenters={"letters": letters}))
    assert old.asked == new.asked != []
    assert (CALLS["table"], CALLS["characters"]) == (2, 1)


def test_directory_of_other_articles_is_refused(run: Run, tmp_path: Path) -> None:
    """A directory belongs to one labelled set; the message says what to do."""
    run(_plan(Table("table", FIVE)))
    other = five()
    other = type(other)("other", other.articles[:4], other.overlapping[:0])
    with pytest.raises(OtherRunError, match=r"evaluation of other articles.*choose another --out"):
        evaluate(_plan(), other, tmp_path / "out", Heard())


def test_scopes_make_other_articles(run: Run, tmp_path: Path) -> None:
    """The engine compares only within a scope, so the same articles with scopes are another set."""
    run(_plan(Table("table", FIVE)))
    scoped = replace(five(), articles=[_of_scope(one, str(n)) for n, one in enumerate(five().articles)])
    with pytest.raises(OtherRunError, match="evaluation of other articles"):
        evaluate(_plan(), scoped, tmp_path / "out", Heard())


def _of_scope(one: LabelledArticle, scope: str) -> LabelledArticle:
    return replace(one, article=replace(one.article, scope=scope))


def test_a_set_that_was_written_is_the_same_one(bodies: list[str], tmp_path: Path) -> None:
    """A set written by `evaluate make` can continue in the directory of a run that generated the same set itself."""
    long = sorted(bodies, key=len)[-4:]
    articles = [Article(str(n), body) for n, body in enumerate(long)]
    made = with_reposts(articles, RepostSettings(edits=("boiler", "drop:0.2")))
    assert {one.strength for one in made.articles} > {2.0}
    write_labelled(made, tmp_path / "made.jsonl", FieldSettings())
    evaluate(_plan(), made, tmp_path / "out", Heard())
    evaluate(_plan(), read_labelled(tmp_path / "made.jsonl", InputSettings()), tmp_path / "out", Heard())


def test_directory_of_other_things_is_refused(tmp_path: Path) -> None:
    """Nothing is written next to files that are not part of a run."""
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(OtherRunError, match="not the directory of an evaluation"):
        evaluate(_plan(), five(), tmp_path, Heard())


def test_directory_of_a_run_under_way_is_refused(tmp_path: Path) -> None:
    """A second run would remove what the workers of the first pass to each other; afterwards it may use the results."""

    class Looking(Heard):
        def begin(self, stage: str, jobs: int) -> None:
            super().begin(stage, jobs)
            with pytest.raises(OtherRunError, match=r"another evaluation is running in .*: wait for it"):
                evaluate(_plan(Table("second", FIVE)), five(), tmp_path, Heard())

    heard = Looking()
    assert len(evaluate(_plan(Table("first", FIVE)), five(), tmp_path, heard).measured) == 1
    assert heard.stages
    assert len(evaluate(_plan(Table("second", FIVE)), five(), tmp_path, Heard()).measured) == 1


def test_copies_do_not_stand_for_other_texts(tmp_path: Path) -> None:
    """Texts with replaced characters are made of one article of each story, whether or not originals are labelled."""
    story = [LabelledArticle(Article(f"{number}", "海" * 20), "one") for number in range(3)]
    others = [LabelledArticle(Article(name, name * 20), name) for name in "山川"]
    labelled = LabelledSet("set", [*story, *others], np.empty((0, 2), np.int64))
    row = tuple(round(1 - place / 20, 2) for place in range(20))
    options = {"measures": {2: Table("two", (row,) * 20)}, "replaced": ReplacedOptions(texts=9, characters=20)}
    experiment = evaluate(_plan(**options), labelled, tmp_path, Heard()).replaced
    assert experiment is not None
    assert experiment.texts == 3


def test_interrupted_run_leaves_what_is_done(tmp_path: Path) -> None:
    """After Ctrl-C, the directory has the results so far, and the next run resumes from them."""
    CALLS.clear()

    class Interrupting(Heard):
        def done(self, name: str, note: str) -> None:
            super().done(name, note)
            raise KeyboardInterrupt

    plan = _plan(Table("first", FIVE), Table("second", FIVE))
    with pytest.raises(KeyboardInterrupt):
        evaluate(plan, five(), tmp_path, Interrupting())
    kept = kept_evaluation(tmp_path)
    assert len(kept.measured) == 1
    assert kept.unmeasured[0].reason.startswith("interrupted")
    assert not (tmp_path / "work").exists()
    assert len(evaluate(plan, five(), tmp_path, Heard()).measured) == 2
    assert CALLS.total() <= 3


def test_killed_run_leaves_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill cannot be handled, so results are saved periodically, and the list of pending ones at the start."""
    monkeypatch.setattr(run_module, "_KEPT_SECONDS", 0.0)
    seen: list[tuple[int, int]] = []

    class Looking(Heard):
        def begin(self, stage: str, jobs: int) -> None:
            super().begin(stage, jobs)
            kept = kept_evaluation(tmp_path)
            seen.append((len(kept.measured), len(kept.unmeasured)))

        def done(self, name: str, note: str) -> None:
            super().done(name, note)
            self.begin(name, 0)

    evaluate(_plan(Table("first", FIVE), Table("second", FIVE)), five(), tmp_path, Looking())
    assert seen == [(0, 2), (0, 2), (1, 1), (2, 0)]


def test_listener_hears_every_job(tmp_path: Path) -> None:
    """Each stage announces its number of jobs, and each job is reported once."""
    heard = Heard()
    evaluate(_plan(Table("table", FIVE), Broken("broken", FIVE)), five(), tmp_path, heard)
    assert heard.stages["algorithms"] == 2
    assert sorted(name for name, _ in heard.told) == ["broken", "table"]


@pytest.mark.slow
def test_processes_give_the_same_as_one(tmp_path: Path) -> None:
    """Two processes give the same results as one."""
    tables = {name: Table(name, FIVE) for name in ("first", "second", "third")}
    one, two = (evaluate(Plan(tables, jobs=jobs), five(), tmp_path / str(jobs), Heard()) for jobs in (1, 2))
    assert [(m.named, m.given, m.swept) for m in one.measured] == [(m.named, m.given, m.swept) for m in two.measured]


@pytest.mark.slow
def test_engine_is_measured_beside_others(run: Run) -> None:
    """A configuration of the engine is an algorithm like any other, except that it has no sweep."""
    engine = {"engine/default": configurations()["engine/default"]}
    evaluation = run(_plan(Table("table", FIVE), configurations=engine))
    measured = evaluation.result("engine/default")
    assert measured is not None
    assert measured.swept is None
    assert measured.given.score.precision == 1.0


def _asked(asked: list[EngineSettings]) -> Callable[[WorkerFiles, Configuration], Job[AlgorithmResult]]:
    """Return a job that records the settings with which an engine would be asked."""

    def asking(_: WorkerFiles, configuration: Configuration) -> Job[AlgorithmResult]:
        asked.append(configuration.settings)
        yield []
        return measured(configuration.named.name, swept=False)

    return asking


def test_results_of_other_engine_settings_are_kept_apart(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has the results of its own settings, which its report names, and computes only those it lacks."""
    asked: list[EngineSettings] = []
    monkeypatch.setattr(run_module, "asking", _asked(asked))
    for near_jaccard, told, count in ((0.33, (), 1), (0.95, ("verify.near_jaccard=0.95",), 2), (0.33, (), 2)):
        settings = EngineSettings.model_validate({"verify": {"near_jaccard": near_jaccard}})
        evaluation = run(_plan(configurations={"engine/default": configurations(settings)["engine/default"]}))
        assert (evaluation.engine_settings, len(asked)) == (told, count)
    assert [one.verify.near_jaccard for one in asked] == [0.33, 0.95]


def test_another_word_in_a_list_of_the_user_computes_anew(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings name only the file."""
    asked: list[EngineSettings] = []
    monkeypatch.setattr(run_module, "asking", _asked(asked))
    words = tmp_path / "words.txt"
    settings = EngineSettings.model_validate({"text": {"stop_words": words}})
    for content in ("的", "的", "了"):
        words.write_text(content, encoding="utf-8")
        run(_plan(configurations={"engine/default": configurations(settings)["engine/default"]}))
    assert len(asked) == 2


def test_replaced_characters_are_measured_once(run: Run) -> None:
    """The experiment on long texts is part of the run, and is kept as well."""
    row = tuple(round(1 - place / 20, 2) for place in range(20))
    measures = {2: Table("two", (row,) * 20)}
    options = {"measures": measures, "replaced": ReplacedOptions(texts=1, characters=20)}
    first, second = run(_plan(**options)), run(_plan(**options))
    assert first.replaced is not None
    assert first.replaced.curves[0].correlation == pytest.approx(1.0)
    assert second.replaced == first.replaced
    assert CALLS["two"] == 1
