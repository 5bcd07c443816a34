"""Metrics of how copies are found.

Knows indexes, epochs and the shadow; knows nothing of where values come from.
"""

from stream_dedup.article import Source
from stream_dedup.engine.shadow import Disagreement
from stream_dedup.observe.metric import Label, counter, gauge, histogram

_DRIFT_BITS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
_SOURCE = Label("source", (Source.CONTENT, Source.LANDMARK, Source.SIMHASH))
_LISTS = Label("source", (Source.LANDMARK, Source.SIMHASH))


class Detection:
    """Detection: how copies are found, and how well the weights fit the stream."""

    matches = counter(
        "links",
        "Links, by the index that found the matched article.",
        "A source disappears: its index is off, or its lists are full (`hot_keys_total`).",
        Label("source", tuple(Source)),
    )
    candidates = counter(
        "candidates",
        "Candidates verified, by the index that found them first.",
        "Many per article, few confirmed: boilerplate fills the lists. Each candidate costs time in `judge` and "
        "`look_up`.",
        _SOURCE,
    )
    candidates_confirmed = counter(
        "candidates",
        "Candidates that matched, by the index that found them first.",
        "Share of the candidates falls: thresholds or texts have changed.",
        _SOURCE,
    )
    simhash_probes = counter(
        "keys",
        "SimHash table keys looked up: the articles' own keys and those some bit flips away.",
        "An article that the other indexes prove to be a copy, or whose landmarks leave nothing open, looks up none. "
        "Fewer per article: more copies are found earlier. More: more lists of landmarks are full.",
    )
    simhash_hits = counter(
        "keys",
        "SimHash table keys looked up for which the index had articles.",
        "Share of the probes grows with the index, up to the tables' occupancy. It jumps: many similar fingerprints, "
        "for example from a template. The time of `look_up` grows with it: see `simhash.prefix_bits`.",
    )
    hot_keys = counter(
        "keys",
        "Landmarks and SimHash keys looked up whose lists are full (`landmarks.cap`, `simhash.bucket_cap`), so that "
        "older articles under them are not seen.",
        "Grows faster than the articles: a template or a site's footer floods the index. The caps bound an article's "
        "cost, but copies may be missed.",
        _LISTS,
    )
    longest_list_articles = gauge(
        "articles",
        "Articles under the fullest key looked up in the last commit.",
        "Near the cap: `hot_keys_total` grows next.",
        _LISTS,
    )
    articles_stripped = counter(
        "articles",
        "Articles from which learnt lines of their site were removed.",
        "A site's stories appear as copies of each other: its lines will be learnt at the end of the epoch.",
    )
    learnt_lines = gauge(
        "lines",
        "Lines known to surround a site's articles, as of the start of the current epoch.",
        "None after several epochs: do the articles have a source or a URL?",
    )
    idf_epoch = gauge(
        "number",
        "Current IDF epoch.",
        "Each change may move fingerprints: see the drift.",
    )
    idf_vocabulary_words = gauge(
        "words",
        "Number of words counted.",
        "Jumps: another language, or input that is not text. Each word takes some memory.",
    )
    epoch_drift_distance = histogram(
        "bits",
        "Hamming distance by which the fingerprints of the newest unique articles (up to 128) moved at the start of "
        "an epoch; one observation per article.",
        "See `epoch_drift_mean_distance`.",
        _DRIFT_BITS,
    )
    epoch_drift_mean_distance = gauge(
        "bits",
        "Mean of that distance in the last epoch measured (an epoch is not measured if no unique article has arrived "
        "since the process started).",
        "Over 2 after the first epochs: the stream has changed, or `idf.epoch_articles` is too small. SimHash finds "
        "fewer copies of older articles until these have left the window; landmarks find them as before.",
    )
    epoch_drift_articles = gauge(
        "articles",
        "Articles whose fingerprints were compared in the last epoch measured.",
        "Few: the mean is not meaningful.",
    )
    shadow_articles = counter(
        "articles",
        "Articles that the shadow judged as well, by kind of disagreement.",
        "Shows what the other thresholds would change: see [trying other "
        "thresholds](README.md#trying-other-thresholds).",
        Label("disagreement", ("none", *Disagreement)),
    )
    shadow_left_out = counter(
        "messages",
        "Disagreements that were not sent because the broker accepted no more.",
        "Grows: lower `shadow.sample`; all are counted in `shadow_articles_total`.",
    )
    shadow_enabled = gauge(
        "0 or 1",
        "1 if the settings enable the shadow (`shadow.enabled`).",
        "Changes only with the settings.",
    )
    shadow_running = gauge(
        "0 or 1",
        "1 while the shadow judges.",
        "0 although enabled: `shadow_ended` in the log has the reason; a restart starts it over.",
    )
