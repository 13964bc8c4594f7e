"""Agent config values as a person gives them: by dotted path, nested, or in a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.spec import Json


def agent_values(agent: Mapping[str, Json] | str | Path | None) -> dict[str, Json]:
    """Return values by dotted path.

    Args:
        agent: ``{"algorithm.learning_rate": 3e-4}``, the same nested, or the path of a YAML file that holds it nested
            (YAML 1.2, so that ``5e-4`` is a number). A + before a name adds what the config leaves out:
            ``{"+normalize_input": True}``, ``{"agent": {"+kl_threshold": 0.01}}``.

    Raises:
        RlnbError: The file cannot be read, there is no mapping, or a value is given twice.
    """
    if isinstance(agent, (str, Path)):
        agent = read_agent(Path(agent))
    if not isinstance(agent, Mapping | None):
        raise RlnbError(
            f"agent={agent!r} is neither the path of a YAML file nor a mapping, as {{'algorithm.learning_rate': 3e-4}}."
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
    """Return the agent config that a YAML file holds, nested as it is there.

    Raises:
        RlnbError: The file cannot be read, or is no mapping.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        values = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise RlnbError(f"The agent config {path} cannot be read: {exc}.") from exc
    except YAMLError as exc:
        raise RlnbError(f"The agent config {path} is no plain YAML: {exc}") from exc
    if not isinstance(values, dict):
        raise RlnbError(f"The agent config {path} holds no mapping of names to values, but {type(values).__name__}.")
    return values


def _marked(path: str) -> str:
    """Return a path with its +, if it has one, in the beginning."""
    parts = path.split(".")
    names = [part.removeprefix("+") for part in parts]
    return ("+" if names != parts else "") + ".".join(names)


def _flat(values: Mapping[str, Json], above: str = "") -> list[tuple[str, Json]]:
    rows: list[tuple[str, Json]] = []
    for name, value in values.items():
        path = f"{above}{name}"
        rows += _flat(value, f"{path}.") if isinstance(value, Mapping) else [(path, value)]
    return rows
