"""What is stored besides the entries: records of articles and of joins, counts of words, facts about the state itself.

Knows their bytes and when they expire; decides nothing.
"""
