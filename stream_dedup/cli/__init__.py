"""The command line: one file per command or group of commands, and what all of them share.

Knows options, the terminal and exit codes; decides nothing, and imports what a command needs only when it runs.
"""
