"""Trackers: each keeps what happened in a run where people look at it."""
