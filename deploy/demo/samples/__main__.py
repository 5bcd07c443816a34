"""`python -m deploy.demo.samples`: counts the messages of each kind and writes the sound ones.

Knows the command line; nothing of how the stream is made.
"""

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

from deploy.demo.samples import sample_stream


def main() -> None:
    """Count the sample messages of each kind, and write the sound ones to a file if one is named."""
    parser = ArgumentParser(prog="python -m deploy.demo.samples", description=main.__doc__)
    parser.add_argument("--out", type=Path, help="file for the sound articles, one JSON object per line")
    out: Path | None = parser.parse_args().out
    samples = sample_stream()
    if out is not None:
        values = (sample.value for sample in samples if sample.dead_reason is None)
        out.write_bytes(b"".join(value + b"\n" for value in values if value is not None))
    for kind, count in sorted(Counter(sample.kind for sample in samples).items()):
        print(f"{count:5} {kind}")
    print(f"{len(samples):5} in all")


if __name__ == "__main__":
    main()
