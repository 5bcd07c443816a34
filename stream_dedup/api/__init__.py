"""The HTTP API and its page: queries on a running service, answered by a separate process.

Knows HTTP; changes nothing, and knows nothing of how an answer is found.
"""
