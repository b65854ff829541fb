"""Agents: each acts on a task under an instruction."""
