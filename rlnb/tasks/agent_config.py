"""Agent config values as the user passes them: by dotted path, nested, or in a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.spec import Json


def agent_values(agent: Mapping[str, Json] | str | Path | None) -> dict[str, Json]:
    """Return agent config values by dotted path.

    Args:
        agent: Values by dotted path (``{"algorithm.learning_rate": 3e-4}``), nested values, or the path of a YAML file
            with nested values (YAML 1.2, so that ``5e-4`` is a number). A ``+`` before a name adds a value that the
            config lacks: ``{"+normalize_input": True}``, ``{"agent": {"+kl_threshold": 0.01}}``.

    Raises:
        RlnbError: The file cannot be read, ``agent`` is not a mapping, or a value is given twice.
    """
    if isinstance(agent, (str, Path)):
        agent = read_agent(Path(agent))
    if not isinstance(agent, Mapping | None):
        raise RlnbError(
            f"agent={agent!r} is neither the path of a YAML file nor a mapping: {{'algorithm.learning_rate': 3e-4}}."
        )
    values: dict[str, Json] = {}
    for path, value in _flat(agent or {}):
        marked = _marked(path)
        if twins := {marked, f"+{marked}", marked.removeprefix("+")} & set(values):
            before = values[twins.pop()]
            raise RlnbError(f"The agent config value {marked!r} is given twice, as {before!r} and as {value!r}.")
        values[marked] = value
    return values


def read_agent(path: Path) -> dict[str, Json]:
    """Return the agent config in a YAML file, nested as in the file.

    Raises:
        RlnbError: The file cannot be read, or does not hold a mapping.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        values = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise RlnbError(f"The agent config {path} cannot be read: {exc}.") from exc
    except YAMLError as exc:
        raise RlnbError(f"The agent config {path} is not plain YAML: {exc}") from exc
    if not isinstance(values, dict):
        raise RlnbError(f"The agent config {path} holds a {type(values).__name__}, not a mapping of names to values.")
    return values


def _marked(path: str) -> str:
    """Return a path with its ``+``, if any, at the beginning."""
    parts = path.split(".")
    names = [part.removeprefix("+") for part in parts]
    return ("+" if names != parts else "") + ".".join(names)


def _flat(values: Mapping[str, Json], above: str = "") -> list[tuple[str, Json]]:
    rows: list[tuple[str, Json]] = []
    for name, value in values.items():
        path = f"{above}{name}"
        rows += _flat(value, f"{path}.") if isinstance(value, Mapping) else [(path, value)]
    return rows
