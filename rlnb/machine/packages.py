"""Packages: unmet requirements, and the shell line that installs a package of rlnb from where rlnb itself came from.

A package index may hold a stranger's package under one of rlnb's names. A fix must therefore not name an index
unless rlnb was installed from one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import sys
import urllib.parse
import urllib.request
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

PIP = "pip>=26.1"
"""Versions of pip that accept extras of a package whose constraint is a file. Older ones stop with an error."""
EXTENSION = "rlnb-jupyterlab"
"""The one package that is not in the folder ``plugins`` of a checkout."""


def install_line(*requirements: str, python: str | None = None, isaacsim: bool = False) -> str:
    """Return a shell line that installs packages of rlnb. It changes no package of Isaac Sim.

    Args:
        requirements: Packages of rlnb with their extras, such as ``"rlnb[report]"`` or ``"rlnb-tasks"``.
        python: Command of the interpreter to install into; None is this one.
        isaacsim: Whether that interpreter has Isaac Sim. This one is examined.
    """
    pip = f"{python or shlex.quote(sys.executable)} -m pip install"
    names = " ".join(shlex.quote(requirement) for requirement in requirements)
    source, editable = origin()
    if source is None:
        return f"{pip} {names}"
    folder = f"cd {shlex.quote(str(source))}"
    constraint = _constraint(isaacsim or (python is None and isaacsim_folder() is not None))
    if editable and python is None:
        folders = " ".join(f"--editable {shlex.quote(_folder(requirement))}" for requirement in requirements)
        return f"{folder} && {pip} {constraint} {folders}"
    if editable:
        folder += " && make wheels && cd dist"
    return f"{folder} && {pip} --upgrade {shlex.quote(PIP)} && {pip} {constraint} {names}"


def editable_line(folder: Path, extra: str) -> str:
    """Return a shell line that installs another package in place, with the packages of rlnb that it needs.

    Args:
        folder: Folder of the package.
        extra: Extra of the package to install too.
    """
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    package = f"--editable {shlex.quote(f'{folder.absolute()}[{extra}]')}"
    source, editable = origin()
    if source is None:
        return f"{pip} {package}"
    upgrade = "" if editable else f"{pip} --upgrade {shlex.quote(PIP)} && "
    return f"cd {shlex.quote(str(source))} && {upgrade}{pip} {_constraint(isaacsim_folder() is not None)} {package}"


def is_requirement(text: str) -> bool:
    """Return whether a text is a requirement of pip, such as ``"skrl>=2.1,<2.2"``."""
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def unmet(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the pip requirements that this interpreter does not meet, with the installed versions."""
    missing = []
    for requirement in map(Requirement, requirements):
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            missing.append(f"{requirement} (not installed)")
        else:
            if version not in requirement.specifier:
                missing.append(f"{requirement} (installed: {version})")
    return tuple(missing)


def origin() -> tuple[Path | None, bool]:
    """Return the folder that rlnb was installed from, and whether that is a checkout.

    It is the folder of the wheel, or the checkout of an editable installation, as ``direct_url.json`` has it (PEP 610).
    The folder is None for a package from an index.
    """
    try:
        text = metadata.distribution("rlnb").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        text = None
    record = json.loads(text) if text else {}
    url = urllib.parse.urlsplit(record.get("url", ""))
    if url.scheme != "file":
        return None, False
    path = Path(urllib.request.url2pathname(url.path))
    return (path, True) if "dir_info" in record else (path.parent, False)


def _constraint(isaacsim: bool) -> str:
    return f"--constraint {'constraints-isaacsim.txt' if isaacsim else 'constraints.txt'}"


def _folder(requirement: str) -> str:
    """Return the folder of a package in a checkout, with its extras: ``"plugins/rlnb-tasks[robots]"``."""
    name, bracket, extras = requirement.partition("[")
    if name == "rlnb":
        return f".{bracket}{extras}"
    parent = "extensions" if name == EXTENSION else "plugins"
    return f"{parent}/{requirement}"


# -- isaacsim --------------------------------------------------------------------------------------------------------
# ``import isaacsim`` asks on stdin. A job has no stdin, and a warm simulator receives its requests there.


ACCEPT_EULA = "OMNI_KIT_ACCEPT_EULA"
_TERMS_URL = "https://docs.omniverse.nvidia.com/platform/latest/common/NVIDIA_Omniverse_License_Agreement.html"
_ACCEPTED = ("y", "yes", "1")


def isaacsim_folder() -> Path | None:
    """Return the folder of the package ``isaacsim`` in this interpreter; None without Isaac Sim."""
    package = importlib.util.find_spec("isaacsim")
    return Path(package.origin).resolve().parent if package is not None and package.origin is not None else None


def isaacsim_terms() -> str:
    """Return why Isaac Sim cannot start in this interpreter, with the fix; empty if its terms were accepted.

    Also empty without Isaac Sim, and for its binary distribution, which does not ask. The rule is that of
    ``isaacsim/kit/kit_app.py`` in the wheels of Isaac Sim 6.2: the variable, or an earlier answer in a file.
    """
    folder = isaacsim_folder()
    if folder is None or not (folder / "kit" / "extscore").is_dir():
        return ""
    if os.environ.get(ACCEPT_EULA, "").lower() in _ACCEPTED or _answer(folder / "kit"):
        return ""
    return (
        f"The terms of Isaac Sim are not accepted. Read them at {_TERMS_URL}. "
        f"If you accept them, set {ACCEPT_EULA}=YES."
    )


def _answer(kit: Path) -> bool:
    """Return whether the question was answered with yes before, as Kit has recorded it in its folder."""
    try:
        first = (kit / "EULA_ACCEPTED").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except OSError:
        return False
    return first.strip().lower() in _ACCEPTED


# -- browser ---------------------------------------------------------------------------------------------------------


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names of the Chromium and Chrome commands in Linux distributions."""


def find_browser() -> str | None:
    """Return the path of the first browser on PATH; None without one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
