"""jieba's precise mode in compiled code.

Knows how a text becomes words; knows nothing of what they are used for.
"""
