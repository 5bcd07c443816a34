"""From the features of a batch to its candidates: keys, tables, probes and the entries that are read for them.

Knows what is looked up in which order; knows nothing of verdicts.
"""
