"""The sources of rlnb and its plugins in an interpreter, which may differ although the versions are equal.

Two checkouts of one version do, if PYTHONPATH or an editable installation names another one on a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Sources = Mapping[str, Sequence[str]]
"""By package, a hash of the text of all its modules, and its folder."""


def sources_of(packages: Sequence[str]) -> dict[str, list[str]]:
    """Return a hash of the modules of each package that this interpreter finds, and the package's folder.

    The function is also the text of a script for another interpreter, so it imports what it needs.

    Args:
        packages: Names of packages as they are imported.
    """
    import hashlib
    import os
    from importlib import util

    found = {}
    for package in packages:
        spec = util.find_spec(package)
        folder = next(iter(spec.submodule_search_locations or ()), "") if spec else ""
        digest = hashlib.sha256()
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(name for name in names if name.endswith(".py")):
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    digest.update(f"{os.path.relpath(path, folder)}\n".encode() + file.read())
        if folder:
            found[package] = [digest.hexdigest(), folder]
    return found


def differences(theirs: Sources, ours: Sources) -> Iterator[str]:
    """Yield a clause for each package of which a node has other sources than the notebook.

    Args:
        theirs: Sources on the node.
        ours: Sources of the notebook. A package that only one side has is left out: versions show it.
    """
    for package, (digest, folder) in ours.items():
        if package in theirs and theirs[package][0] != digest:
            yield f"the sources of {package} in {theirs[package][1]} are not those of the notebook in {folder}"
