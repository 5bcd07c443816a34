"""A run: which results exist already, which jobs compute the others, and what is done with them.

Knows jobs and the directory of the run; knows nothing of how algorithms work, or of reports.
"""

import time
from collections import Counter
from pathlib import Path

from stream_dedup.arrays import F32
from stream_dedup.engine.comparability import comparability
from stream_dedup.evaluate.algorithm import NotAvailable
from stream_dedup.evaluate.labelled import LabelledSet, in_order
from stream_dedup.evaluate.replaced import long_texts, replacement_experiment
from stream_dedup.evaluate.results import (
    AlgorithmInfo,
    AlgorithmResult,
    AlgorithmWithoutResult,
    Evaluation,
    KindCount,
    ReplacementExperiment,
    SetSummary,
)
from stream_dedup.evaluate.runner.digests import digest_of, digest_of_code, digest_of_set
from stream_dedup.evaluate.runner.folder import Folder, read_seconds
from stream_dedup.evaluate.runner.jobs import asking, comparing, cutting, named_of, replacing
from stream_dedup.evaluate.runner.plan import Listener, Plan
from stream_dedup.evaluate.runner.tasks import WorkerFiles
from stream_dedup.evaluate.runner.workers import Job, Workers, processes, run_jobs, workers
from stream_dedup.evaluate.studies import KGRAMS
from stream_dedup.version import __version__

# The most work that `report` lacks after a kill. It is not 0, since writing a thousand results takes a second.
_KEPT_SECONDS = 30.0
_MORE_JOBS = 2  # in progress than there are processes: while one waits for its last call, others fill in
_REPLACED = AlgorithmInfo("replaced characters", "kgram", "", "", KGRAMS)
_NOT_DONE = "interrupted before this was done: the same command resumes the run"


def evaluate(plan: Plan, labelled: LabelledSet, directory: Path, listener: Listener) -> Evaluation:
    """Run what has no result yet, and return all results; an interrupted run resumes where it stopped.

    Args:
        plan: what to run.
        labelled: the articles to run on.
        directory: for the results, created if it does not exist.
        listener: receives the progress.

    Raises:
        OtherRunError: the directory holds something else, or another run is using it.
    """
    with Folder(directory, digest_of_set(labelled)) as folder, workers(plan.jobs) as team:
        run = _Run(plan, labelled, folder, team, listener)
        try:
            run.finish()
        finally:
            run.keep()
        return run.evaluation()


class _Run:
    """A run in progress.

    Args:
        plan: what to run.
        labelled: the articles to run on.
        folder: where results are kept.
        team: makes the calls.
        listener: receives the progress.
    """

    def __init__(self, plan: Plan, labelled: LabelledSet, folder: Folder, team: Workers, listener: Listener) -> None:
        self._plan = plan
        self._labelled = labelled
        self._folder = folder
        self._team = team
        self._listener = listener
        self._at_once = processes(plan.jobs) + _MORE_JOBS
        self._measured: dict[str, AlgorithmResult] = {}
        self._unmeasured: dict[str, AlgorithmWithoutResult] = {}
        self._replaced: ReplacementExperiment | None = None
        self._kept = time.monotonic()

    def finish(self) -> None:
        """Run everything that has no result yet."""
        self._take_kept()
        self.keep()
        shared = WorkerFiles.of(self._labelled, self._folder.work)
        self._cut(shared)
        self._measure(shared)
        self._replace()

    def keep(self) -> None:
        """Write all results so far to the file that `report` shows."""
        self._folder.keep_evaluation(self.evaluation())
        self._kept = time.monotonic()

    def evaluation(self) -> Evaluation:
        """Return all results so far."""
        pending = [AlgorithmWithoutResult(self._named(name), _NOT_DONE, failed=False) for name in self._pending()]
        unmeasured = sorted([*self._unmeasured.values(), *pending], key=lambda one: one.named.name)
        measured = sorted(self._measured.values(), key=lambda one: (-one.best.score.f1, one.named.name))
        return Evaluation(
            summary_of(self._labelled, self._folder.digest),
            tuple(measured),
            tuple(unmeasured),
            self._replaced,
            self._plan.command,
            __version__,
            self._plan.engine_settings,
        )

    def _take_kept(self) -> None:
        for name in self._pending():
            kept = self._folder.result(name, self._key(name))
            if kept is not None:
                self._measured[name] = kept

    def _key(self, name: str) -> str:
        """Return a digest of everything that the result of an algorithm depends on."""
        configuration = self._plan.configurations.get(name)
        if configuration is not None:
            settings = configuration.settings
            # Of the user's word lists, the settings have only the paths.
            return digest_of(name, settings.model_dump(mode="json"), comparability(settings), digest_of_code())
        algorithm = self._plan.algorithms[name]
        threshold, versions = self._plan.threshold_of(algorithm), self._versions(algorithm.segmenter)
        return digest_of(name, threshold, versions, digest_of_code())

    def _pending(self) -> list[str]:
        names = (*self._plan.configurations, *self._plan.algorithms)
        return [name for name in names if name not in self._measured and name not in self._unmeasured]

    def _named(self, name: str) -> AlgorithmInfo:
        configuration = self._plan.configurations.get(name)
        return configuration.named if configuration else named_of(self._plan.algorithms[name])

    # ------------------------------------------------------------------------------------------------ words

    def _cut(self, shared: WorkerFiles) -> None:
        """Cut words with the segmenters needed; algorithms whose segmenter is not available are not measured."""
        pending = [self._plan.algorithms[name] for name in self._pending() if name in self._plan.algorithms]
        jobs: dict[str, Job[None]] = {}
        lacking: dict[str, str] = {}
        for name in sorted({algorithm.segmenter for algorithm in pending} - {""}):
            segmenter = self._plan.segmenters[name]
            reason = segmenter.missing()
            if reason is not None:
                lacking[name] = reason
                self._without(name, reason, failed=False)
            elif read_seconds(self._words(name)) is None:
                jobs[name] = cutting(shared, segmenter, self._words(name))
        self._listener.lacks(lacking)
        self._listener.begin("words", len(jobs))
        for name, outcome in run_jobs(jobs, self._team, self._at_once):
            if isinstance(outcome, Exception):
                self._without(name, _told(outcome), failed=not isinstance(outcome, NotAvailable))
            self._listener.done(name, _told(outcome) if isinstance(outcome, Exception) else "cut")

    def _words(self, segmenter: str) -> Path:
        return self._folder.words(segmenter, digest_of(segmenter, self._versions(segmenter), digest_of_code()))

    def _versions(self, segmenter: str) -> list[str]:
        return self._plan.segmenters[segmenter].versions() if segmenter else []

    def _without(self, segmenter: str, reason: str, *, failed: bool) -> None:
        """Record that the algorithms with this segmenter cannot be measured."""
        for name in self._pending():
            algorithm = self._plan.algorithms.get(name)
            if algorithm is not None and algorithm.segmenter == segmenter:
                self._unmeasured[name] = AlgorithmWithoutResult(named_of(algorithm), reason, failed)

    # ------------------------------------------------------------------------------------------------ results

    def _measure(self, shared: WorkerFiles) -> None:
        """Run the algorithms without a result."""
        jobs = {name: self._job(shared, name) for name in self._pending()}
        self._listener.begin("algorithms", len(jobs))
        for name, outcome in run_jobs(jobs, self._team, self._at_once):
            if isinstance(outcome, Exception):
                failed = not isinstance(outcome, NotAvailable)
                self._unmeasured[name] = AlgorithmWithoutResult(self._named(name), _told(outcome), failed)
                self._listener.done(name, _told(outcome))
            else:
                self._measured[name] = outcome
                self._folder.keep_result(outcome, self._key(name))
                if time.monotonic() - self._kept >= _KEPT_SECONDS:
                    self.keep()
                self._listener.done(name, f"F1 {outcome.best.score.f1:.4f}")

    def _job(self, shared: WorkerFiles, name: str) -> Job[AlgorithmResult]:
        configuration = self._plan.configurations.get(name)
        if configuration is not None:
            return asking(shared, configuration)
        algorithm = self._plan.algorithms[name]
        words = self._words(algorithm.segmenter) if algorithm.segmenter else None
        return comparing(shared, algorithm, self._plan.threshold_of(algorithm), words)

    def _replace(self) -> None:
        """Run the experiment on replaced characters, with a job for each text."""
        options, measures = self._plan.replaced, self._plan.measures
        texts = long_texts([one.article.body for one in self._labelled.firsts()], options)
        if not texts or not measures:
            return
        key = digest_of(options.texts, options.characters, options.seed, sorted(measures), digest_of_code())
        self._replaced = self._folder.replaced(key)
        if self._replaced is not None:
            return
        self._listener.begin("replaced characters", len(texts))
        jobs = {f"text {n}": replacing(measures, text, (options.seed, n)) for n, text in enumerate(texts, 1)}
        found: dict[str, F32] = {}
        for name, outcome in run_jobs(jobs, self._team, self._at_once):
            self._listener.done(name, _told(outcome) if isinstance(outcome, Exception) else "")
            if isinstance(outcome, Exception):
                self._unmeasured[_REPLACED.name] = AlgorithmWithoutResult(_REPLACED, _told(outcome), failed=True)
                return
            found[name] = outcome
        self._replaced = replacement_experiment(list(measures), texts, [found[name] for name in jobs])
        self._folder.keep_replaced(self._replaced, key)


def summary_of(labelled: LabelledSet, digest: str) -> SetSummary:
    """Return what a report says about a labelled set."""
    edits = Counter(one.edit for one in labelled.articles if one.edit is not None)
    return SetSummary(
        labelled.name,
        digest,
        len(labelled.articles),
        len({one.story for one in labelled.articles}),
        labelled.positive_count(),
        len(labelled.overlapping),
        tuple(KindCount(*edit, edits[edit]) for edit in sorted(edits, key=in_order)),
    )


def _told(error: Exception) -> str:
    """Return an error as a report shows it."""
    return str(error) if isinstance(error, NotAvailable) else f"{type(error).__name__}: {error}"
