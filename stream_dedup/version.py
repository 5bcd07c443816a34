"""The version: the one place it is written down. Knows nothing else."""

__version__ = "0.1.0"
