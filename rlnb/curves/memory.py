"""Memory that curves of millions of points took, given back once no page shows them."""

from __future__ import annotations

import ctypes
import gc
import logging

logger = logging.getLogger(__name__)


def give_back() -> None:
    """Return what is free to the system: glibc keeps it, where small pieces in use lie between (malloc_trim(3))."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library, which has its own ways
        logger.debug("free memory stays with this process")
