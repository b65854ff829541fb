"""A sweep of runs: its plan, its parent, its jobs, and what they share."""
