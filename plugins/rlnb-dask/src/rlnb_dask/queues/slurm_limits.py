"""Explanations of the limits of Slurm's accounts, QOS and partitions, of which Slurm says only the names.

The source of the names is https://slurm.schedmd.com/resource_limits.html.
"""

from __future__ import annotations

import re

FULL = re.compile(r"\b(QOS|Assoc)(Max|Grp)SubmitJob\w*")
"""Limits of the number of jobs in the queue, under which the same job may be submitted later."""
_NAME = re.compile(r"\b(QOS|Assoc|Partition)((?:Max|Min|Grp)\w+|(?<=Partition)(?:Time|Node)Limit)\b")
_OWNERS = {"QOS": "QOS", "Assoc": "account", "Partition": "partition"}
_LESS = {
    "Wall|Time|Minutes": "a shorter walltime",
    "GRES": "fewer GPUs",
    "Cpu": "fewer cores",
    "Mem": "less memory",
    "Node": "fewer nodes",
}
"""A request below a limit, by the quantity in the limit's name. The first that fits counts."""
_PREFIX = re.compile(r"^(sbatch: )?(error: |allocation failure: )?(Batch job submission failed: )?")
LISTS = {
    "QOS": "`sacctmgr show qos` lists its limits.",
    "Assoc": "`sacctmgr show associations user=$USER` lists your limits.",
    "Partition": "`sinfo` lists the limits of partitions.",
}
"""Commands that list the limits."""
RIGHTS = (
    "`sacctmgr show associations user=$USER format=account,partition,qos` lists the accounts and QOS that you may use."
)
PARTITIONS = "`sinfo` lists partitions and their limits. If sinfo fails, SLURM_CONF names no running Slurm."


def objection(stderr: str) -> str:
    """Return the objection of sbatch to a job, its last line, with what the errors before it add.

    These are the name of a limit, or of a partition that does not exist.
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    details = [line for line in lines[:-1] if line.startswith("sbatch: error: ")]
    return ": ".join(_PREFIX.sub("", line) for line in [*lines[-1:], *details])


def fix(objection: str) -> str:
    """Return the fix for an objection of sbatch."""
    if limit := _NAME.search(objection):
        return f"{_sentence(advice(limit[0]))} {LISTS[limit[1]]}"
    return RIGHTS if re.search("account|qos", objection, re.IGNORECASE) else PARTITIONS


def advice(text: str) -> str:
    """Return what the limit that a text names means for a job, as words without a full stop; empty without a limit.

    Args:
        text: Such as ``"QOSMaxWallDurationPerJobLimit"``.
    """
    limit = _NAME.search(text)
    if limit is None:
        return ""
    owner, kind = _OWNERS[limit[1]], limit[2]
    if "Submit" in kind:
        return f"the {owner} allows no further job in the queue until another one has ended"
    if kind.startswith("Min"):
        return f"the job is smaller than the {owner} permits. Use more cores, GPUs or nodes"
    if limit[0] == "PartitionNodeLimit":
        return "the partition has too few nodes in service, or its limits permit only fewer or only more nodes"
    if limit[0] == "PartitionTimeLimit":
        return "the job exceeds a limit of the partition. Use a shorter walltime"
    if re.search("Per(Job|Node)", kind):
        quantity = re.sub("Per(Job|Node)", "", kind)
        less = next((less for pattern, less in _LESS.items() if re.search(pattern, quantity)), "a smaller job")
        return f"the job exceeds a limit of the {owner} and will not start. Use {less}"
    if re.match(r"Grp\w*(?<!Run)Minutes|GrpWall", kind):
        return f"the rest of the {owner}'s budget is too small for the job"
    jobs = f"the jobs of the {owner}" if kind.startswith("Grp") else "your jobs"
    return f"with this one, {jobs} would exceed a limit of the {owner}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
