"""The precise mode of jieba in compiled code.

Knows how a text becomes words; knows nothing of what these are for.
"""
