"""What is remembered beside the entries: of each article, of each join, of words and of the state itself.

Knows their bytes and when they expire; decides nothing.
"""
