"""Converts an engine explanation into the API's answer.

Knows the fields of both; knows nothing of where the texts come from.
"""

from stream_dedup.ask.answers import KeysAnswer, MeasuresAnswer, WordAnswer
from stream_dedup.engine.explain import Explanation, WeightedWord
from stream_dedup.output_fields import fingerprint_hex, rounded


def measures_of(explanation: Explanation) -> MeasuresAnswer:
    """Return how two texts compare, with the numbers rounded for output."""
    first, second = explanation.fingerprints
    return MeasuresAnswer(
        relation=explanation.relation,
        ground=explanation.ground,
        verdict=explanation.verdict,
        jaccard=rounded(explanation.jaccard),
        containment=rounded(explanation.containment),
        hamming=explanation.hamming,
        fingerprints=(fingerprint_hex(first), fingerprint_hex(second)),
        differing_bits=explanation.differing_bits,
        cosine=rounded(explanation.cosine),
        grams=explanation.grams,
        idf_epoch=explanation.epoch,
        keys=KeysAnswer(
            content=explanation.keys.content,
            landmarks=explanation.keys.landmarks,
            table_keys=explanation.keys.tables,
        ),
        shared_words=list(map(_word_answer, explanation.shared_words)),
        differing_words=list(map(_word_answer, explanation.differing_words)),
    )


def _word_answer(word: WeightedWord) -> WordAnswer:
    return WordAnswer(word=word.word, weights=(round(word.weights[0], 5), round(word.weights[1], 5)))
