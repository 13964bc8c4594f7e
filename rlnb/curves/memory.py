"""Release of the memory that curves of millions of points took, once no page shows them."""

from __future__ import annotations

import ctypes
import gc
import logging

logger = logging.getLogger(__name__)


def give_back() -> None:
    """Return free memory to the system with malloc_trim(3). glibc keeps free memory between allocated blocks."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library, without malloc_trim
        logger.debug("free memory stays with this process")
