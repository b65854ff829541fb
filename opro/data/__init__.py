"""Data sets: each loads tasks in three splits."""
