"""YAML documents: merge them and write them."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

from rlnb.spec import Json

Document = Mapping[str, Json]
"""A JSON object."""
_AMBIGUOUS = re.compile(r"(?i)y|n|yes|no|on|off|[-+.\d][\d_:.]*")
"""Text that YAML 1.1 reads as another type, as kubectl does: ``ACCEPT_EULA: Y`` would be a boolean."""


def merged(base: Document, changes: Document) -> Document:
    """Return a document with changes. Objects are merged at any depth, and lists of named objects by their names.

    Any other list is replaced, as in a strategic merge of Kubernetes.
    """
    return {**base, **{key: _merged(base[key], value) if key in base else value for key, value in changes.items()}}


def _merged(before: Json, after: Json) -> Json:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return merged(before, after)
    if _named(before) and _named(after) and isinstance(before, Sequence) and isinstance(after, Sequence):
        items: dict[str, Json] = {_name(item): item for item in before}
        for item in after:
            items[_name(item)] = _merged(items[_name(item)], item) if _name(item) in items else item
        return [*items.values()]
    return after


def _named(value: Json) -> bool:
    """Return whether a value is a list of objects that have a name."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(item, Mapping) and "name" in item for item in value)


def _name(item: Json) -> str:
    assert isinstance(item, Mapping), "only lists of named objects are merged"
    return str(item["name"])


def yaml(document: Document) -> str:
    """Return a document as YAML."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    def scalars(value: Json) -> Json:
        if isinstance(value, Mapping):
            return {key: scalars(item) for key, item in value.items()}
        if isinstance(value, str):
            if "\n" in value:
                return LiteralScalarString(value)
            return DoubleQuotedScalarString(value) if _AMBIGUOUS.fullmatch(value) else value
        return [scalars(item) for item in value] if isinstance(value, Sequence) else value

    writer, text = YAML(), io.StringIO()
    writer.width = 4096
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.representer.ignore_aliases = lambda *_: True
    writer.dump(scalars(document), text)
    return text.getvalue()
