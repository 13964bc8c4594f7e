"""The options of each queue's jobs that are no directives: they start copies of a training, or rlnb sets them itself.

The sources are the manual pages of sbatch, of qsub of PBS and of Grid Engine, of bsub and of oarsub.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

COPIES = "It would start copies of the training. Use rlnb.sweep(...) for several runs."
AGAIN = (
    "A second start would be a copy of the training. rlnb resumes it in a further job. Use the setting of the "
    "launcher, such as max_restarts=3."
)
NODES = "rlnb sets it. Use the setting of the launcher, such as nodes=2."
TIME = (
    "rlnb stops the training before the end of the walltime. Use the setting of the launcher, such as "
    'walltime="04:00:00".'
)
OUTPUT = "rlnb reads the job's output from its own file. Use run.logs()."
RESERVED: Mapping[str, Mapping[str, str]] = {
    "slurm": {
        **dict.fromkeys(("--array", "-a", "--wrap"), COPIES),
        **dict.fromkeys(("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node"), NODES),
        **dict.fromkeys(("--time", "-t"), TIME),
        **dict.fromkeys(("--output", "-o", "--error", "-e"), OUTPUT),
        "--requeue": AGAIN,
    },
    "pbs": {"-J": COPIES, "-r y": AGAIN, "-o": OUTPUT, "-e": OUTPUT, "-j": OUTPUT, "-l walltime": TIME},
    "sge": {"-t": COPIES, "-r y": AGAIN, "-o": OUTPUT, "-e": OUTPUT, "-j": OUTPUT, "-l h_rt": TIME},
    "lsf": {"-r": AGAIN, "-o": OUTPUT, "-oo": OUTPUT, "-e": OUTPUT, "-eo": OUTPUT, "-W": TIME},
    "oar": {**dict.fromkeys(("--array", "--array-param-file"), COPIES), "-O": OUTPUT, "-E": OUTPUT},
    "htcondor": {"queue": COPIES, "output": OUTPUT, "error": OUTPUT, "stream_output": OUTPUT},
}
"""Why an option is refused, by queue and option."""


def reserved_reason(queue: str, directive: str) -> str:
    """Return why a directive is refused; an empty text if it is not.

    Args:
        queue: Name of the queue's launcher.
        directive: A line such as ``"--array=0-3"`` or ``"-t 1-4"``.
    """
    text = " ".join(directive.split())
    for option, reason in RESERVED.get(queue, {}).items():
        if re.match(rf"{re.escape(option)}($|[\s=])", text, re.IGNORECASE if queue == "htcondor" else 0):
            return reason
        if queue == "slurm" and len(option) == 2 and re.match(rf"{option}\d", text):  # -n4
            return reason
    return ""
