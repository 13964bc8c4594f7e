"""Attacks of one user on another in a shared folder of runs: nothing of the attacker's is executed. Needs root.

python benchmarks/attacks.py                  # all, about 10 minutes
python benchmarks/attacks.py --number 30      # some of them
python benchmarks/attacks.py --swaps          # as many that swap a name between its check and its use
python benchmarks/attacks.py --again 12 118   # these alone, with what the attacked user's verb has said

The rules by which the attacks are made are those of ``tests/rig/attacks.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import attacks

NUMBER = 315
"""Attacks of a whole run: three or four of each manipulation with each verb."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--seed", type=int, default=50)
    parser.add_argument("--swaps", action="store_true")
    parser.add_argument("--again", type=int, nargs="*", default=[], help="numbers of attacks")
    options = parser.parse_args()
    done: list[attacks.Outcome] = []
    manipulations = ("swapped",) if options.swaps else attacks.MANIPULATIONS
    for outcome in attacks.run(
        options.number, options.seed, lambda attack: not options.again or attack.number in options.again, manipulations
    ):
        one = outcome.attack
        what = outcome.skipped or "; ".join((*outcome.violations, *filter(None, [outcome.bare]))) or "held"
        print(f"| {one.number} | {one.manipulation} | {one.verb} | {one.target.kind} | {what} |", flush=True)
        if options.again:
            print(outcome.said)
        done.append(outcome)
    tried = [outcome for outcome in done if not outcome.skipped]
    violations = Counter(text.partition(":")[0] for outcome in tried for text in outcome.violations)
    found = ", ".join(f"{count} {what}" for what, count in violations.items()) or "0 violations"
    kinds = len({outcome.attack.target.kind for outcome in tried})
    swaps = sum("SWAPPED" in outcome.said for outcome in tried)
    print(f"{len(done) - len(tried)} were not possible; {sum(map(bool, (one.bare for one in tried)))} bare errors")
    if options.number >= NUMBER and not options.again:
        record(
            f"attacks of another user in a shared root, made by rule{', swaps alone' * options.swaps}",
            f"{len(tried)} attacks on {kinds} kinds of names, {swaps} swaps between check and use: {found}",
            "300 attacks: 0 executed, 0 files outside changed or read, nothing hangs",
            not violations and len(tried) >= 300,
        )


if __name__ == "__main__":
    main()
