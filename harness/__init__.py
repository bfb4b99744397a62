"""Load testing and stall detection for streaming LLM gateways.

Importing this package does nothing: no monkey-patching, no clock, no socket. The rooms below it import each
other in one direction, kept by `tests/unit/test_house.py`.
"""

__version__ = "0.1.0"  # the only place: the build backend reads it from here
