"""The engine over files, without a broker.

Knows file formats and where results go; knows nothing of how decisions are made.
"""
