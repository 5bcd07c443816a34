"""The model of several scopes: each behaves as if it were alone, except that they share the stream's time.

Knows that rule and how keys name a scope; knows nothing of what the model of one scope reports.
"""

import math
from dataclasses import dataclass, field

from hypothesis import strategies as st

from stream_dedup import EngineSettings
from tests.engine.model import SEPARATOR, Item, Model, Seen, streams

SCOPES = ("", "租户")


@dataclass
class Scopes:
    """What the engine must report on a stream of several scopes.

    Attributes:
        settings: of all scopes.
        models: by scope.
        successions: all so far: scope, old and new canonical article, and the reason.
    """

    settings: EngineSettings
    models: dict[str, Model] = field(default_factory=dict)
    successions: list[tuple[str, ...]] = field(default_factory=list)

    def feed(self, item: Item) -> Seen:
        """Take the next item; return what `seen` must return for the engine's outcome."""
        now = max((model.now for model in self.models.values()), default=-math.inf)
        model = self.models.setdefault(item.scope, Model(self.settings))
        model.now, known = now, len(model.successions)
        shown = model.feed(item)
        self.successions += [(item.scope, *one) for one in model.successions[known:]]
        return shown

    @property
    def clusters(self) -> dict[str, Seen | None]:
        """The latest report on each cluster, by the key of its messages."""
        return {
            f"{scope}{SEPARATOR}{name}" if scope else name: shown
            for scope, model in self.models.items()
            for name, shown in model.clusters.items()
        }


def scoped_streams(longest: int = 24) -> st.SearchStrategy[list[Item]]:
    """Return streams of one scope or of two; see `streams`."""
    return streams(longest) | streams(longest, scopes=SCOPES)
