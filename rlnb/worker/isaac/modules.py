"""Imports a task's own module, and the modules beside it that belong to its version, from their current source text.

Nothing else in the folder of tasks can be imported: another user may have put it there, under a name that a library
asks for.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any, Literal

from rlnb.errors import RlnbError, did_you_mean
from rlnb.hooks import plugins
from rlnb.launch.command import BY_RLNB, SAFE_PATH
from rlnb.storage import access
from rlnb.storage.files import source_body


def import_file(path: Path, local: Iterable[str]) -> ModuleType:
    """Import a task module from its file; import it again if it or a local file that it needs was edited.

    Args:
        path: The module.
        local: Files that the module needs, as paths from its folder. Those that exist there are imported from there.
    """
    local_files = sorted(name for name in local if (path.parent / name).is_file())
    contents = {file: file.read_bytes() for file in (path, *(path.parent / name for name in local_files))}
    digest = hashlib.sha256(b"".join(map(source_body, contents.values()))).hexdigest()[:12]
    name = f"rlnb_task_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    modules = {_module_name(file): path.parent / file for file in local_files if file.endswith(".py")}
    own_names = _beside.serve(modules, contents, f"{path.stem}_{digest}")
    loader = FromText(name, path, contents[path], own_names)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class FromText(SourceFileLoader):
    """Loader of a text that was read before. It neither reads nor writes bytecode.

    Python takes bytecode for current if the size of the source and its time in whole seconds are unchanged. Two quick
    edits of one digit change neither.

    Args:
        fullname: Name of the module.
        file: Its file.
        content: Content of the file.
        own_names: Names under which the modules beside it are loaded, by the names by which it imports them. They are
            other ones for those that are installed too.
    """

    def __init__(self, fullname: str, file: Path, content: bytes, own_names: Mapping[str, str]) -> None:
        super().__init__(fullname, str(file))
        self._content, self._own_names = content, own_names

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._content, self.path)

    def exec_module(self, module: ModuleType) -> None:
        if self._own_names:
            vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        super().exec_module(module)

    def _import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        """Import a module for an ``import`` statement of this one, as :func:`builtins.__import__` does."""
        top, dot, below = name.partition(".")
        own = name if level else f"{self._own_names.get(top, top)}{dot}{below}"
        return builtins.__import__(own, globals, locals, fromlist, level)


class _Beside:
    """The modules beside a task's module that belong to its version, as the last finder of :data:`sys.meta_path`."""

    def __init__(self) -> None:
        self._loaders: dict[str, FromText | None] = {}
        """Loaders of the modules, by name; None for a folder without ``__init__.py``."""
        self._found: dict[str, ModuleSpec] = {}

    def serve(self, modules: Mapping[str, Path], contents: Mapping[Path, bytes], version: str) -> Mapping[str, str]:
        """Serve the modules of a version under their names, or, if those are taken, under names of the version.

        So its task imports them, while libraries go on to import what is installed.

        Returns:
            The other names, by the first part of the names that the version uses.
        """
        if self not in sys.meta_path:
            sys.meta_path.append(self)  # type: ignore[arg-type]
        tops = {name.partition(".")[0] for name in modules}
        self._forget(tops)
        # A folder without __init__.py comes after any module or package, as in Python.
        taken = {top: _kind(top) for top in tops}
        hidden = {top for top in tops if taken[top] == "module" and top not in modules}
        own_names = {top: f"rlnb_task_{top}_of_{version}" for top in tops - hidden if taken[top]}
        for name, file in modules.items():
            top, dot, below = name.partition(".")
            if top not in hidden:
                own = f"{own_names.get(top, top)}{dot}{below}"
                self._loaders[own] = FromText(own, file, contents[file], own_names)
                for length in range(1, len(own.split("."))):
                    self._loaders.setdefault(".".join(own.split(".")[:length]), None)
        return own_names

    def _forget(self, tops: Iterable[str]) -> None:
        """Serve the modules of an earlier version no longer, and let them be imported again."""
        for name in [name for name in self._loaders if name.partition(".")[0] in tops]:
            del self._loaders[name]
            spec = self._found.pop(name, None)
            if spec is not None and getattr(sys.modules.get(name), "__spec__", None) is spec:
                del sys.modules[name]

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module of a task. In a package, no other finder finds anything."""
        if name not in self._loaders:
            return None
        loader = self._loaders[name]
        spec = ModuleSpec(name, None, is_package=True)
        if loader is not None:
            found = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
            assert found is not None
            spec = found
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations = []
        self._found[name] = spec
        return spec


_beside = _Beside()


def _kind(name: str) -> Literal["", "folder", "module"]:
    """Return what others import by a name: nothing, a folder without ``__init__.py``, or a module or package."""
    if name in sys.modules:
        return "module"
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or getattr(finder, "only_watches", False):
            continue
        if (spec := find(name, None)) is not None:
            return "module" if spec.loader is not None else "folder"
    return ""


def _module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# -- registrations ---------------------------------------------------------------------------------------------------


CONFIG = "env_cfg_entry_point"
"""Key of a registration with the task's env config."""
INSTALL = (
    "Use pip to install your project there (pip install --editable .), or add its folder to PYTHONPATH. Then call "
    "rlnb.simulator().restart()."
)
"""The fix for a module of the user that the worker does not find."""


def check_registration(gym_id: str) -> None:
    """Refuse a task whose registration names an env or an env config that does not exist.

    The module of the env is not imported, since it may load USD, which Isaac Sim has to load itself.

    Raises:
        RlnbError: The module or the class does not exist. An error inside the module of the config is raised as it is.
    """
    import gymnasium

    spec = gymnasium.spec(gym_id)
    if (reference := _reference(spec.kwargs[CONFIG])) is not None:
        _refuse_absent(gym_id, CONFIG, *reference, importlib.import_module)
    if (reference := _reference(spec.entry_point)) is not None:
        _refuse_absent(gym_id, "entry_point", *reference, _names_in)


def _reference(value: object) -> tuple[str, str] | None:
    """Return the parts of a ``"module:attr"`` string of a registration; None for anything else, such as a file."""
    if not isinstance(value, str) or ":" not in value or value.endswith((".yaml", ".yml")):
        return None
    name, _, attribute = value.partition(":")
    return name, attribute


def _refuse_absent(gym_id: str, key: str, name: str, attribute: str, load: Callable[[str], object]) -> None:
    """Refuse a registration in which a reference names nothing."""
    where = f"The registration of {gym_id} has {key}='{name}:{attribute}'"
    try:
        module = load(name)
    except ModuleNotFoundError as exc:
        if not is_part(exc.name, name):
            raise  # a module that it imports is missing
        raise RlnbError(f"{where}, but there is no module {exc.name!r}. Correct the registration.") from exc
    if module is not None and not hasattr(module, attribute):
        hint = _similar_class(attribute, module)
        raise RlnbError(f"{where}, but {name} has no {attribute!r}.{hint} Correct the registration.")


_MADE_LATER = re.compile(
    rb"import +\*|__getattr__|__dict__|\blazy|\b(globals|locals|vars|setattr|exec) *\(|\bsys\.modules\b"
)
"""Source of a module that binds names which its source does not show."""


def _names_in(name: str) -> SimpleNamespace | None:
    """Return the names that the source of a module binds, as attributes; None if they cannot be told from it.

    Raises:
        ModuleNotFoundError: There is no such module.
    """
    if name in sys.modules:
        return SimpleNamespace(**vars(sys.modules[name])) if "__getattr__" not in vars(sys.modules[name]) else None
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    source = Path(spec.origin or "")
    # A stub beside it names what code makes during the import.
    if source.suffix != ".py" or not source.is_file() or source.with_suffix(".pyi").exists():
        return None
    text = source.read_bytes()
    if _MADE_LATER.search(text):
        return None
    tree = ast.parse(text, spec.origin or "")
    names: dict[str, type | None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names[node.name] = type(node.name, (), {})
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif isinstance(node, ast.alias):
            names[(node.asname or node.name).partition(".")[0]] = None
    return SimpleNamespace(**names)


def load_reference(reference: str) -> Any:
    """Return the object that a ``"module:attr"`` string of the user names.

    Raises:
        RlnbError: The module or the attribute does not exist.
    """
    name, _, attribute = reference.partition(":")
    try:
        return plugins.load(reference)
    except RlnbError as exc:
        cause, fix = exc.__cause__, why_not(name)
        if isinstance(cause, ModuleNotFoundError) and is_part(cause.name, name):
            fix = f"{fix} {INSTALL}"
        elif isinstance(cause, AttributeError) and name in sys.modules:
            fix = f"{fix}{_similar_class(attribute, sys.modules[name])}"
        text = str(exc)
        raise RlnbError(f"{text}{'' if text.endswith('.') or not fix else '.'}{fix}") from exc


def env_of(reference: str, cfg: Any) -> Any:
    """Return the env with which a package has registered a config, which need not be in the config's module.

    Args:
        reference: The config as ``"module:class"``.
        cfg: The config itself.

    Returns:
        The entry point of the env; None if no registration has the config.
    """
    import gymnasium

    specs = gymnasium.registry.values()
    same = (spec for spec in specs if (spec.kwargs or {}).get(CONFIG) in (reference, cfg))
    return next((spec.entry_point for spec in same), None)


def is_part(part: str | None, name: str) -> bool:
    """Return whether a module is another one or a package around it."""
    return part is not None and f"{name}.".startswith(f"{part}.")


def _similar_class(name: str, module: object) -> str:
    return did_you_mean(name, [key for key, value in vars(module).items() if inspect.isclass(value)])


# -- the working folder ----------------------------------------------------------------------------------------------
# The worker is started without it (``python -P``): another user's ``json.py`` there would be executed as this user,
# and one's own would replace Python's.


_refused: dict[Path, str] = {}
"""Working folders that are not searched, with who else can put modules there."""


def search_working_folder() -> None:
    """Search the working folder after all other folders, if only this user can put modules there.

    With a ``PYTHONSAFEPATH`` of the user's own, it is not searched at all.
    """
    if os.environ.get(SAFE_PATH) == BY_RLNB:
        del os.environ[SAFE_PATH]
    if os.environ.get(SAFE_PATH) or not sys.flags.safe_path:  # without -P, Python itself searches it
        return
    try:
        folder = Path.cwd()
    except OSError:  # deleted
        return
    if who := access.adders_to(folder):
        _refused[folder] = who
    elif str(folder) not in sys.path:
        sys.path.append(str(folder))


def why_not(module: str) -> str:
    """Return a sentence if a module is missing because the working folder that has it is not searched; "" otherwise."""
    top = module.partition(".")[0]
    for folder, who in _refused.items():
        if (folder / top).is_dir() or (folder / f"{top}.py").is_file():
            why = f" The working folder {folder} has it, but is not searched, because of {who}."
            return f"{why} If you trust them, add it to PYTHONPATH, or set RLNB_TEAM=1."
    return ""
