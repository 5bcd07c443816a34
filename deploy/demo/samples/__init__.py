"""A labelled stream of invented news, posts and bulletins, their reposts, and broken messages.

Knows its own texts and labels; nothing of the service that judges them.
"""

from deploy.demo.samples.message import Sample
from deploy.demo.samples.stream import sample_stream

__all__ = ["Sample", "sample_stream"]
