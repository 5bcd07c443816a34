"""What the service shows of itself: metrics, health, logs.

Knows how to show; knows nothing of how decisions are made.
"""
