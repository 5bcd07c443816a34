"""A service with its API whose page is looked at, and the articles that it has judged.

Knows texts and what was made of them; knows nothing of the page.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.ports import free_port
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

STORY = (
    "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。镇里今年把摊位费由按月收改成按天收，"
    "雨天不来不收钱。卖藕片的郑巧云说，算下来比去年同期少交了四千多元，她用这笔钱换了一台静音排烟机。"
)
COPY = STORY.replace("静音排烟机", "二手冰柜")
OTHER = "气象台预计，明天白天晴间多云，最高气温二十六度，夜里转阴，北风三到四级，出门请带一件外套，傍晚收好晾晒的衣物。"
# The articles have dates that may lie in the clock's future, or far in its past.
_ANY_TIME = ("input.max_future_seconds=1000000000", "window.days=36500")
SCRIPT = "<script>window.hurt = 1</script>"
PICTURE = '<img src="x" onerror="window.hurt = 1">'
HOSTILE = (
    f"有人在标题里写代码，{PICTURE}，想让看的人上当。编辑部提醒，凡是来历不明的文字都只当文字显示，"
    "绝不执行其中任何一句，读者看到它时不必惊慌。"
)
HOSTILE_ID = f"{SCRIPT}&amp;'\"#%/?"


@dataclass(frozen=True, slots=True)
class Site:
    """A running service with its API.

    Attributes:
        service: the process.
        topics: of its run.
        bootstrap: the broker.
    """

    service: Service
    topics: Topics
    bootstrap: str

    @property
    def url(self) -> str:
        """Address of its API."""
        return str(self.service.events("answering")[-1]["api"])


@contextmanager
def running_site(bootstrap: str, directory: Path) -> Iterator[Site]:
    """Run a service with its API that has judged a story with two near copies, another story, and hostile text.

    The hostile text comes twice, the second time with a script appended, which is markup: an exact copy.
    """
    topics = fresh_topics(bootstrap)
    # The API queries the service for its figures at the port in the settings.
    flags = ("api.enabled=true", "api.port=0", "api.refresh_ms=100", f"http.port={free_port()}", *_ANY_TIME)
    hostile = {"title": SCRIPT, "source": PICTURE, "published_at": "2026-10-15T11:00:00Z"}
    with Service(directory, bootstrap, topics, *flags) as service:
        service.wait_ready()
        produce(
            bootstrap,
            topics.input,
            [
                article("story", STORY, title="夜市重新开张", source="石桥晚报", published_at="2026-10-15T08:00:00Z"),
                article("copy", COPY, source="江畔快讯", published_at="2026-10-15T09:30:00Z"),
                article("part", STORY[:80], source="北岭在线", published_at="2026-10-15T08:40:00Z"),
                article("weather", OTHER, source="气象台", published_at="2026-10-15T10:00:00Z"),
                article("plain", HOSTILE, **hostile),
                article(HOSTILE_ID, HOSTILE + SCRIPT, **hostile),
            ],
        )
        collect(bootstrap, topics, 6, service)
        wait_until(lambda: bool(service.events("answering")), "the API", 180)
        yield Site(service, topics, bootstrap)
