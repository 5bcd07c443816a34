"""What is answered, as people read it at a terminal.

Knows answers, tables and colours; knows nothing of arguments, and finds nothing out.
"""
