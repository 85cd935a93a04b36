"""``docs/configuration.md``, made from the models, so that it cannot say anything else than they do.

A configuration as YAML text, with the defaults filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sharectl.config.fields import UNIT_NAMES, unit_of
from sharectl.config.groups import GroupConfig
from sharectl.config.model import Config
from sharectl.config.places import PublisherConfig
from sharectl.config.problems import SECTIONS, choices_of, is_whole, keys_of, range_of
from sharectl.files.yaml import MAX_BYTES, ValuePath, place

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
            yield from (
                f"  {_scalar(group)}: {flow(content)}" for group, content in data[key].items()
            )
        else:
            yield f"{key}: {flow(data[key])}{'' if here else _DEFAULT}"


def flow(value: Any) -> str:
    """A value of plain data as YAML on one line."""
    if isinstance(value, Mapping):
        return (
            f"{{{', '.join(f'{_scalar(key)}: {flow(content)}' for key, content in value.items())}}}"
        )
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


_INTRODUCTION = f"""# Configuration

One YAML file, `/etc/sharectl/sharectl.yaml` unless `--config FILE` names another. Only the groups have to be written:

```yaml
groups:
  cms:   {{pledge_hs06: 87100}}
  atlas: {{pledge_hs06: 105300}}
nodes: {{controlled: "*"}}        # host patterns, a share such as "50%", or a ClassAd constraint
```

`sharectl check config [FILE]` prints the file with every default filled in, or everything that is wrong with it, each
with its line and what to write instead (exit code 78). `--json` prints either for programs. All other commands
refuse a file that this check refuses. What it recommends goes to standard error, and a key that cannot be used on this
machine too (exit code 1). The last line is `# ok` or `# not ok` with the number of problems.

What the file may not hold, since YAML would change its meaning in silence or sharectl could only guess:

- a key that is not listed here, or one that is there twice (groups: also if only case differs);
- a number with a unit or in quotes. The unit is at the end of the key: `validity_seconds: 3060`, not `51m`;
- `.nan`, `.inf`, and numbers that only YAML reads as numbers (`1_000`, `51:00`, `0x1F`, `0644`);
- a name that YAML reads as something else: the groups `no` and `123` need quotes, `"no"` and `"123"`;
- anchors, aliases, merge keys and tags, tabs in the indentation, bytes that are not UTF-8, more than {MAX_BYTES // 2**20} MiB.
- a file to write (`publish`, `history`, `copy_file`) that is another one, or that sharectl reads
  or keeps: this file, the keys, certificates, HTCondor's configuration, what lies in
  `state_directory`. By links or as the same file on this machine: `check config` ends with 1,
  `cycle` and `publish` with 78, and `disable` sets the switch and withdraws nothing. `ledger
  export -o` and `report -o` write none of these either (74).
"""

_TITLES: Mapping[ValuePath, str] = {
    (): "Top level",
    ("groups", "*"): "groups.NAME",
    ("groups", "*", "groups", "*"): "groups.NAME.groups.PART",
    ("groups", "*", "control"): "groups.NAME.control",
    ("publish", "*"): "publish[…]",
    ("publish", "*", "https"): "publish[…].https",
    ("publish", "*", "collector"): "publish[…].collector",
}
_KINDS = {
    "groups": "mapping of group names",
    "publish": "list of mappings",
    "schedds": "list of names",
    "federations": "list of names",
    "proxy": "text, null",
    "cric_vo": "text, null",
    "cric": "mapping, below, null",
    "collector": "host name or address, null",
    "name": "text, null",
    "url": "text",
    "identity": "text, null",
    "max_target_share": "share, null",
    "controlled": "pattern, list of patterns, share, constraint",
    "reserved": "pattern, list of patterns, share, constraint, null",
}
"""Key -> its values, where its type does not say it."""
_PLEDGES = ("pledge_hs06", "pledge_hepscore23")
_EXACTLY_ONE: Mapping[ValuePath, str] = {
    **{("groups", "*", key): "one of the two" for key in _PLEDGES},
    **{("groups", "*", "groups", "*", key): "one of the three" for key in ("share", *_PLEDGES)},
    **{("publish", "*", key): "one of the three" for key in keys_of(PublisherConfig)},
}
"""Key -> its default, where exactly one of several is to be written."""


def reference() -> str:
    """Text of the page, in Markdown."""
    parts = [_INTRODUCTION]
    for path, section in SECTIONS.items():
        parts.append(
            f"\n## {_TITLES.get(path, place(path))}\n\n{_paragraph(section.__doc__ or '')}\n"
        )
        parts.append("\n| key | value | default | meaning |\n|---|---|---|---|\n")
        parts.extend(f"{row}\n" for row in _rows(path, section))
    return "".join(parts)


def _paragraph(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _rows(path: ValuePath, section: type[BaseModel]) -> Iterator[str]:
    for key, field in keys_of(section).items():
        cells = (
            f"`{key}`",
            _values(key, field),
            _default((*path, key), field),
            field.description or "",
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _values(key: str, field: FieldInfo) -> str:
    """Such as ``whole number, 2 to 1024 cores``."""
    annotation = str(field.annotation)
    limits = range_of(field)
    null = ", null" if "Optional" in annotation and field.alias is None and key != "file" else ""
    if annotation.endswith("PublisherConfig]"):
        return "mapping, below"
    if key in _KINDS:
        return _KINDS[key]
    if choices_of(field):
        return " or ".join(f"`{choice}`" for choice in choices_of(field)) + null
    if not limits:
        return f"absolute path{null}" if "Path" in annotation else "mapping, below"
    unit = unit_of(key)
    kind = "whole number" if is_whole(field) else "number"
    return f"{kind}, {limits}{' ' + UNIT_NAMES[unit] if unit else ''}{null}"


def _default(path: ValuePath, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if path in _EXACTLY_ONE:
        return _EXACTLY_ONE[path]
    if "*" in path:
        return f"`{flow(field.get_default())}`"
    value: Any = as_data(Config.model_validate({"groups": {"any": {"pledge_hs06": 1}}}))
    for part in path:
        if value is None:  # a section that is left out
            return f"`{flow(field.get_default())}`"
        value = value[part]
    return "see below" if isinstance(value, dict) else f"`{flow(value)}`"
