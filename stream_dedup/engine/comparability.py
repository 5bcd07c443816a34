"""Which settings a state can be used with: those that stored fingerprints, sketches and keys depend on.

Knows settings and word lists; knows nothing of where a state keeps them.
"""

import hashlib
from typing import Any

from stream_dedup.settings import EngineSettings
from stream_dedup.settings.engine import WeightSettings
from stream_dedup.text.lexicon import shipped_list

_GROUPS = {
    "text": (
        "segmenter",
        "hmm",
        "simplify",
        "strip_html",
        "strip_boilerplate",
        "learn_lines",
        "learn_min",
        "learn_share",
    ),
    "weights": tuple(WeightSettings.model_fields),
    "simhash": ("enabled", "tables", "prefix_bits"),
    "landmarks": ("enabled", "keys", "spacing", "most_keys"),
    "sketch": ("gram", "size", "numbers", "places"),
    "idf": ("epoch_articles", "first_epoch_articles"),
}


def comparability(settings: EngineSettings) -> dict[str, Any]:
    """Return the settings that stored fingerprints, sketches and keys depend on, with hashes of the word lists."""
    text, plain = settings.text, settings.model_dump(mode="json")
    lists = {
        "text.user_dictionary": text.user_dictionary,
        "text.stop_words": text.stop_words or shipped_list("stop_words.txt"),
        "text.marker_words": text.marker_words or shipped_list("marker_words.txt"),
        "text.boilerplate": text.boilerplate or shipped_list("boilerplate.txt"),
    }
    return {
        **{f"{group}.{name}": plain[group][name] for group, names in _GROUPS.items() for name in names},
        **{name: path and hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in lists.items()},
    }
