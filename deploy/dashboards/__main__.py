"""`python -m deploy.dashboards`: writes the dashboards as the files that Grafana reads.

Knows which there are and where they go; knows nothing of what they show.
"""

import sys
from pathlib import Path

from deploy.dashboards import DASHBOARDS, FOLDER


def main(folder: Path = FOLDER) -> int:
    """Write a file for each dashboard, and remove those of others."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {page.write(folder) for page in DASHBOARDS}
    for file in set(folder.glob("*.json")) - written:
        file.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
