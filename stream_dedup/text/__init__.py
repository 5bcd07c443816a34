"""Raw text to normal text, to words, to weights.

Knows Chinese, dictionaries and document counts; knows nothing of fingerprints or storage.
"""
