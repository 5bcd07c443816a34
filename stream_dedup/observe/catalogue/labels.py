"""Labels that several themes share.

Knows their names and what bounds their values; knows no metric.
"""

from stream_dedup.observe.metric import Label

TOPIC = Label("topic", bound="the topics that `input.topics` matches")
PARTITION = Label("partition", bound="the partitions that this process reads")
