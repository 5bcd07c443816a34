"""The state and its changelog: which belongs to which settings, and how the state catches up with the changelog.

Knows directories, snapshots and replay; knows nothing of roles.
"""
