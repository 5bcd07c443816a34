"""Observability: metrics, health, logs, traces.

Knows how to report; knows nothing of how decisions are made.
"""
