"""`python -m deploy.dashboards`: writes the dashboards as the files that Grafana reads.

Knows which there are and where they go; knows nothing of what they show.
"""

from deploy.dashboards import DASHBOARDS, FOLDER


def main() -> None:
    """Write a file for each dashboard, and remove those of others."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = {page.write(FOLDER) for page in DASHBOARDS}
    for file in set(FOLDER.glob("*.json")) - written:
        file.unlink()


if __name__ == "__main__":
    main()
