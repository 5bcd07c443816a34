"""Warm-up: queries on a short in-memory stream, so that code is compiled and dictionaries are read before anyone waits.

Knows what is asked; knows nothing of a service's state, which may still be empty. `python -m stream_dedup.ask.warming`
compiles all loops of the engine and of the API in advance.
"""

from stream_dedup.ask.follower import view_of
from stream_dedup.ask.measures import measures_of
from stream_dedup.ask.similar import query_of, similar_articles
from stream_dedup.engine.dedup import rehearsed_engine
from stream_dedup.engine.explain import Explainer
from stream_dedup.engine.warm_up import questions
from stream_dedup.settings import EngineSettings

_ALL = -1  # milliseconds: no article is older


def warm_up(settings: EngineSettings, explainer: Explainer) -> None:
    """Run the API's two expensive queries: which articles a text resembles, and why one text is a copy of another.

    Args:
        settings: the settings of the state that will be queried.
        explainer: the explainer that will answer.
    """
    with rehearsed_engine(settings) as engine:
        view = view_of(engine.state.store, settings, engine.progress)
        try:
            articles = questions()
            for article in articles:
                similar_articles(query_of(article, view, explainer.fingerprinter), view, settings, _ALL)
                measures_of(explainer.explain(articles[0], article, view.epoch, view.learnt))
        finally:
            view.index.close()


if __name__ == "__main__":
    defaults = EngineSettings()
    warm_up(defaults, Explainer(defaults))
