"""Dumps of configs."""

import os


def dump_yaml(filename, data):
    """Write a config as YAML. Isaac Lab's dumps hold tags of Python's own types, and so does this one."""
    os.makedirs(os.path.dirname(filename), exist_ok=True)
    with open(filename, "w") as file:
        file.writelines(f"{line}\n" for line in _lines(data, ""))


def _lines(data, indent):
    for name, value in data.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, slice):
            yield f"{indent}{name}: !!python/object/apply:builtins.slice"
            yield from (f"{indent}- null" for _ in range(3))
        else:
            yield f"{indent}{name}: {value}"
