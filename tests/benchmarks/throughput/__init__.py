"""The whole service compared with its references, in one run: `python -m tests.benchmarks.throughput`."""
