"""Segmenters that a user may have installed in addition to this package.

Knows how each is called; depends on none of them.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO

from stream_dedup.evaluate.segmenters.cutting import Cut

LTP_MODEL = "LTP_MODEL"
# LTP's models see 510 characters: the rest of a longer piece would give no words.
_LTP_PIECE = re.compile(r"[^。！？；!?;\n]{0,499}[。！？；!?;\n]|[^。！？；!?;\n]{1,500}")


def jieba_fast() -> Cut:
    """Return jieba's precise mode, with its inner loops in C."""
    module = import_module("jieba_fast")
    module.setLogLevel(logging.WARNING)
    module.initialize()
    cut: Cut = module.lcut
    return cut


def thulac() -> Cut:
    """Return THULAC's cutter, with the model in its package."""
    with redirect_stdout(StringIO()):  # it prints that it has loaded its model
        model = import_module("thulac").thulac(seg_only=True)
    return lambda text: [word for word, *_ in model.cut(text)]


def ictclas() -> Cut:
    """Return the cutter of NLPIR, today's ICTCLAS; it needs a licence that is renewed each month."""
    module = import_module("pynlpir")
    module.open()
    return lambda text: module.segment(text, pos_tagging=False)


def ltp() -> Cut:
    """Return LTP's cutter, with the model that `LTP_MODEL` names, or its small one from the model hub."""
    model = import_module("ltp").LTP(os.environ.get(LTP_MODEL, "LTP/small"))

    def cut(text: str) -> Iterator[str]:
        pieces = _LTP_PIECE.findall(text)
        for words in model.pipeline(pieces, tasks=["cws"]).cws if pieces else []:
            yield from words

    return cut


def lac() -> Cut:
    """Return LAC's cutter."""
    model = import_module("LAC").LAC(mode="seg")
    return lambda text: model.run(text) if text else []


def pkuseg() -> Cut:
    """Return the cutter of pkuseg, in spaCy's fork, which downloads its model on first use."""
    cut: Cut = import_module("spacy_pkuseg").pkuseg().cut
    return cut
