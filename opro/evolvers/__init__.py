"""Evolvers: each searches for a better instruction."""
