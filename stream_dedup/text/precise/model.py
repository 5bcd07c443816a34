"""jieba's hidden Markov model: how likely a character begins, continues or ends a word, or is one by itself.

Knows the model's tables and how it cuts a run of characters; knows nothing of the dictionary.
"""

from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, NamedTuple

import numpy as np

from stream_dedup.arrays import F64, I32, U8, U16
from stream_dedup.compiled.hashing import code_points
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.dictionary import jieba_folder
from stream_dedup.text.precise.alphabet import Alphabet

Emissions = dict[str, dict[str, float]]
_STATES = "BEMS"  # begin, end, middle, single; the order counts: of two equal paths that of the later state is taken
_BEGIN, _END, _MIDDLE, _SINGLE = range(4)
_DECIMALS = 6  # of the emissions that jieba-rs keeps, as cppjieba does
_IMPOSSIBLE = -3.14e100  # jieba's own value; among equally impossible states their order decides


class Model(NamedTuple):
    """Logarithms of probabilities.

    Attributes:
        starts: of each state at the first character, shape (4,).
        moves: from a state to the next, shape (4, 4).
        emissions: of each code of the alphabet in each state, shape (size, 4).
    """

    starts: F64
    moves: F64
    emissions: F64


def jieba_emissions() -> Emissions:
    """Return for each state jieba's logarithm of the probability of each character that the model knows."""
    emissions: Emissions = _table("emit")
    return emissions


def model_of(alphabet: Alphabet, known: Emissions) -> Model:
    """Return the model, indexed by the codes of an alphabet that has all of its characters."""
    moves, starts = _table("trans"), _table("start")
    emissions = np.full((alphabet.size, len(_STATES)), _IMPOSSIBLE)
    for state, name in enumerate(_STATES):
        likely = np.fromiter(known[name].values(), np.float64)
        emissions[alphabet.inner[code_points("".join(known[name]))], state] = np.round(likely, _DECIMALS)
    return Model(
        np.array([starts[state] for state in _STATES]),
        np.array([[moves[one].get(other, _IMPOSSIBLE) for other in _STATES] for one in _STATES]),
        emissions,
    )


def _table(name: str) -> Any:  # noqa: ANN401  # each table has a type of its own
    """Return a table of jieba's module finalseg, without loading the rest of jieba."""
    name = f"prob_{name}"
    spec = spec_from_file_location(name, jieba_folder() / "finalseg" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"the package jieba has no finalseg.{name}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.P


@kernel
def mark_ends(codes: U16, runs: I32, model: Model, choices: U8) -> None:
    """Find the likeliest states of runs of characters (Viterbi 1967), and mark the last character of each word.

    Args:
        codes: of the text's characters.
        runs: where each run begins and ends, shape (r, 2).
        model: the model.
        choices: written within the runs: 1 at the last character of each word and 0 at the others.
    """
    starts, moves, emissions = model.starts, model.moves, model.emissions
    to_begin_e, to_begin_s = moves[_END, _BEGIN], moves[_SINGLE, _BEGIN]
    to_end_b, to_end_m = moves[_BEGIN, _END], moves[_MIDDLE, _END]
    to_middle_b, to_middle_m = moves[_BEGIN, _MIDDLE], moves[_MIDDLE, _MIDDLE]
    to_single_e, to_single_s = moves[_END, _SINGLE], moves[_SINGLE, _SINGLE]
    for run in range(len(runs)):
        start, stop = np.int64(runs[run, 0]), np.int64(runs[run, 1])
        code = np.int64(codes[start])
        begin, end = starts[_BEGIN] + emissions[code, _BEGIN], starts[_END] + emissions[code, _END]
        middle, single = starts[_MIDDLE] + emissions[code, _MIDDLE], starts[_SINGLE] + emissions[code, _SINGLE]
        for i in range(start + 1, stop):
            code = np.int64(codes[i])
            # Sums in jieba's order, so that they round in the same way.
            begin_e = end + to_begin_e + emissions[code, _BEGIN]
            begin_s = single + to_begin_s + emissions[code, _BEGIN]
            end_b, end_m = begin + to_end_b + emissions[code, _END], middle + to_end_m + emissions[code, _END]
            middle_b = begin + to_middle_b + emissions[code, _MIDDLE]
            middle_m = middle + to_middle_m + emissions[code, _MIDDLE]
            single_e = end + to_single_e + emissions[code, _SINGLE]
            single_s = single + to_single_s + emissions[code, _SINGLE]
            choices[i] = (
                (begin_s >= begin_e) << _BEGIN
                | (end_m >= end_b) << _END
                | (middle_m >= middle_b) << _MIDDLE
                | (single_s >= single_e) << _SINGLE
            )
            begin, end = larger(begin_e, begin_s), larger(end_b, end_m)
            middle, single = larger(middle_b, middle_m), larger(single_e, single_s)
        state = np.int64(_SINGLE if single >= end else _END)
        for i in range(stop - 1, start - 1, -1):
            later = np.int64(choices[i]) >> state & 1
            choices[i] = state & 1  # the odd states end a word
            # Begin and single, whose two bits are equal, follow an end or a single.
            state = 2 * later + ((state ^ state >> 1 ^ 1) & 1)


@kernel
def larger(one: float, other: float) -> float:
    """Return the larger of two numbers; neither is NaN."""
    return one if one > other else other  # noqa: FURB136  # numba's `max` checks for NaN first, with branches
