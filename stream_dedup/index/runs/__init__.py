"""Posting lists of millions of entries: young ones in memory, the others in sorted runs on disk.

Knows keys, numbers of entries and details of postings; knows nothing of articles or of where keys come from.
"""
