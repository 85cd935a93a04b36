"""A configuration as YAML text, with the defaults filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from sharectl.adapters.config_groups import GroupConfig
from sharectl.adapters.config_model import Config

_PLAIN = re.compile(r"/?[A-Za-z_][A-Za-z0-9_./-]*")
_TEXT = "tag:yaml.org,2002:str"
_DEFAULT = "  # default"
_RESOLVER: Any = yaml.resolver.Resolver()


def as_data(config: Config) -> dict[str, Any]:
    """``config`` as the plain data of a configuration file; also what JSON shows of it."""
    data: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    data["groups"] = {name: _pledge(group) for name, group in config.groups.items()}
    data["publish"] = [
        {name: value for name, value in way.items() if value is not None} for way in data["publish"]
    ]
    return data


def render(config: Config) -> str:
    """YAML text that `config_file.load` reads as ``config`` again; values that nobody wrote are marked as defaults."""
    return "".join(f"{line}\n" for line in _section(config, as_data(config), written=True))


def _pledge(group: GroupConfig) -> dict[str, Any]:
    return group.model_dump(mode="json", by_alias=True, exclude_none=True)


def _section(section: BaseModel, data: Mapping[str, Any], *, written: bool) -> Iterator[str]:
    """Lines of a mapping; ``written`` if the file that ``section`` is from has it."""
    for name, field in type(section).model_fields.items():
        key, value = field.alias or name, getattr(section, name)
        here = written and name in section.model_fields_set
        if isinstance(value, BaseModel):
            yield f"{key}:"
            yield from (f"  {line}" for line in _section(value, data[key], written=here))
        elif key == "groups":
            yield f"{key}:"
            yield from (f"  {_scalar(group)}: {flow(content)}" for group, content in data[key].items())
        else:
            yield f"{key}: {flow(data[key])}{'' if here else _DEFAULT}"


def flow(value: Any) -> str:
    """A value of plain data as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_scalar(key)}: {flow(content)}' for key, content in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _reads_as_itself(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else _with_point(repr(value))
    return json.dumps(value)


def _reads_as_itself(text: str) -> bool:
    """Whether YAML reads ``text``, without quotes, as that string."""
    return (
        _PLAIN.fullmatch(text) is not None
        and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT
    )


def _with_point(number: str) -> str:
    """``1e-07`` as ``1.0e-07``: without a point YAML 1.1 reads text."""
    mantissa, exponent, power = number.partition("e")
    return number if "." in mantissa or not exponent else f"{mantissa}.0e{power}"
