"""`python -m deploy.dashboards.picture`: draws the dashboards from their own queries on a real Prometheus.

Knows where the pictures go; knows nothing of how they are drawn.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from deploy.dashboards import DASHBOARDS
from deploy.dashboards.picture.draw import draw
from deploy.dashboards.picture.panel_data import Span, seen
from deploy.dashboards.picture.scenario import SCRAPE_SECONDS, run_scenario

PICTURES = Path(__file__).parents[2] / "pictures"
_CAPTION = "drawn from the dashboard's own queries on a real Prometheus, not by Grafana"
_STEP_SECONDS = 2.0


def main() -> int:
    """Run a broker, the service and Prometheus, and draw what the dashboards show of them."""
    options = _options()
    program = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
    if program is None:
        print("Prometheus is not installed: run `apt-get install prometheus` on Debian, or set PROMETHEUS=/path")
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    with run_scenario(Path(program), lambda line: print(line, flush=True)) as life:
        span = Span(life.begin, life.end, _STEP_SECONDS, 8 * SCRAPE_SECONDS)
        for page in DASHBOARDS:
            file = options.out / f"dashboard-{page.name.removeprefix('stream-dedup-')}.png"
            draw(seen(page, life.prometheus, span), file, _CAPTION)
            print(file)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.dashboards.picture", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder of the pictures (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
