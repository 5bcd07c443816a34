"""The Grafana dashboards as code: `make dashboards` writes them to deploy/grafana/dashboards.

Knows which there are; knows nothing of Grafana's format.
"""

from pathlib import Path

from deploy.dashboards.detection import DETECTION
from deploy.dashboards.frame import Page
from deploy.dashboards.index import INDEX
from deploy.dashboards.kafka import KAFKA
from deploy.dashboards.overview import OVERVIEW

DASHBOARDS = (OVERVIEW, INDEX, DETECTION, KAFKA)
FOLDER = Path(__file__).parents[1] / "grafana" / "dashboards"

__all__ = ["DASHBOARDS", "FOLDER", "Page"]
