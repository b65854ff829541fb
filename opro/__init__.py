"""An experiment-tracking sweep runner for OPRO (Optimization by PROmpting)."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - from a checkout nothing else would say so
    raise SystemExit("opro needs Python 3.11 or newer; this is " + sys.version.split()[0])

__version__ = "0.1.0"
