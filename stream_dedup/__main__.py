"""`python -m stream_dedup` is the command line."""

from stream_dedup.cli.main import main

main()
