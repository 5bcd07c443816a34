"""The command line: a file a command, and what all of them share.

Knows options, the terminal and exit codes; decides nothing, and loads what a command runs when it runs.
"""
