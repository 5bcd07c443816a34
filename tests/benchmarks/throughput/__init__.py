"""The whole service beside its references, in one run: `python -m tests.benchmarks.throughput`."""
