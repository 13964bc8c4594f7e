"""The plugins that change the env config and the source of the task, now and in the training of a checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from rlnb.hooks.registry import versions_of
from rlnb.records.record import RunRecord
from rlnb.records.trust import edited_copies
from rlnb.worker.jobs.context import OpenJob

logger = logging.getLogger(__name__)
HOOK = "rlnb_configure_env"
"""The hook by which a plugin changes the env config."""


def differences(job: OpenJob) -> tuple[str, ...]:
    """Return a sentence for each plugin, and each edited file, by which the env may differ from that of the training.

    Args:
        job: Evaluation or export of a run.
    """
    record = RunRecord(job.run.path, job.manifest)
    texts = (*edited_copies(record), *_of_plugins(record))
    for text in texts:
        logger.warning("%s", text)
    return texts


def _of_plugins(record: RunRecord) -> Iterator[str]:
    started = record.last_started
    if started is None or started.plugins is None:  # an older rlnb trained, and recorded no plugins
        return
    trained, here = started.plugins, versions_of(HOOK)
    for name in sorted({*trained, *here}):
        if name not in here:
            plugin = f"The plugin {name!r} {trained[name]}".rstrip()
            state = "It is not installed here, or does not work, so the env may differ."
            yield f"{plugin} could change the env of the training. {state}"
        elif name not in trained:
            plugin = f"The plugin {name!r} {here[name]}".rstrip()
            yield f"{plugin} may change the env here, and was not part of the training."
        elif trained[name] != here[name]:
            versions = f"{trained[name] or 'unknown'} in the training, and {here[name] or 'unknown'} here"
            yield f"The plugin {name!r}, which may change the env, had version {versions}."
