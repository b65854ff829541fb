"""An experiment-tracking sweep runner for OPRO (Optimization by PROmpting)."""

__version__ = "0.1.0"
