"""Judges: each rates an agent's output on a task."""
