"""Robots and scenes built on this machine, so that stock Isaac Lab tasks run without a download."""

__version__ = "0.2.0.dev0"
