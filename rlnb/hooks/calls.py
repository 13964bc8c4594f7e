"""Calls a hook of all plugins."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from rlnb.hooks.answers import Answer, answers
from rlnb.hooks.registry import implementations_of

logger = logging.getLogger(__name__)
_told: set[str] = set()


def call(hook: str, **arguments: Any) -> Iterator[Answer]:
    """Call a hook of each plugin that works, the last registered first, and yield each answer or error in turn.

    Args:
        hook: Name of the hook.
        arguments: Every argument of the hook.
    """
    return answers(hook, implementations_of(hook), **arguments)


def require(hook: str, **arguments: Any) -> Any:
    """Call a hook that changes a run, and return the first value that is not None.

    Raises:
        HookError: A hook failed. The run must not go on without the change.
    """
    for answer in call(hook, **arguments):
        if answer.error is not None:
            raise answer.error
        if answer.value is not None:
            return answer.value
    return None


def observe(hook: str, **arguments: Any) -> Any:
    """Call a hook that only shows or follows a run, and return the first value that is not None.

    A hook that fails ends nothing: it is logged once, with its plugin, and the other plugins are called.
    """
    for answer in call(hook, **arguments):
        if answer.error is not None:
            if str(answer.error) not in _told:
                _told.add(str(answer.error))
                logger.warning("%s", answer.error, exc_info=answer.error.__cause__)
        elif answer.value is not None:
            return answer.value
    return None


def versions_of(hook: str) -> dict[str, str]:
    """Return the version of each plugin that implements a hook, by the plugin's name."""
    return {plugin.name: plugin.version for plugin, _ in implementations_of(hook)}
