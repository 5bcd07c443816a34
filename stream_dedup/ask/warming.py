"""Questions to a short stream in memory, so that all that answers is compiled, or read, before somebody waits for it.

Knows what is asked; knows nothing of a service's state, which may be empty yet.
"""

from stream_dedup.ask.follower import view_of
from stream_dedup.ask.measures import measures_of
from stream_dedup.ask.similar import query_of, similar_articles
from stream_dedup.engine.dedup import rehearsed_engine
from stream_dedup.engine.explain import Explainer
from stream_dedup.engine.rehearsal import questions
from stream_dedup.settings import EngineSettings

_ALL = -1  # milliseconds: no article is older


def warm_up(settings: EngineSettings, explainer: Explainer) -> None:
    """Ask what an API is asked: what texts are like, and why one is a copy of another.

    Args:
        settings: of the state that will be asked.
        explainer: that will answer.
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
