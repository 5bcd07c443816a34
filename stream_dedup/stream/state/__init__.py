"""The state and its changelog: which belongs to which settings, and how one comes up to the other.

Knows directories, snapshots and replay; knows nothing of roles.
"""
