"""The HTTP API and its page: questions to a running service, answered beside it.

Knows HTTP; changes nothing, and knows nothing of how an answer is found.
"""
