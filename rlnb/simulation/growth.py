"""The growth of the living simulator's memory from one env to the next."""

from __future__ import annotations

import logging

from rlnb.tasks import requests

logger = logging.getLogger(__name__)

MAKES_ENV = (
    requests.Preview,
    requests.Examine,
    requests.Budget,
    requests.Compile,
    requests.RunJob,
    requests.RunJobThere,
)
"""Types of the requests that make an env."""
SETTLED_AFTER = 3
"""Number of requests that make an env until all caches are filled. From then on, memory should not grow."""
GROWTH = 1.25
"""Factor by which memory has to grow for a warning."""


class Growth:
    """Warns if the memory of a process has grown since its caches were filled."""

    def __init__(self) -> None:
        self._count = 0
        self._settled_bytes = 0

    def observe(self, size_bytes: int) -> None:
        """Note the resident memory of the process after a request that made an env."""
        self._count += 1
        if self._count == SETTLED_AFTER:
            self._settled_bytes = size_bytes
        elif self._count > SETTLED_AFTER and size_bytes > GROWTH * self._settled_bytes:
            logger.warning(
                "The living simulator has grown from %.2f to %.2f GiB over %d requests. Free the memory with "
                "rlnb.simulator().restart().",
                self._settled_bytes / 2**30,
                size_bytes / 2**30,
                self._count - SETTLED_AFTER,
            )
            self._settled_bytes, self._count = size_bytes, SETTLED_AFTER
