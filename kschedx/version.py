"""The version of kschedx, also for pyproject.toml and in a source tree that is not installed."""

__version__ = "0.1.0"
