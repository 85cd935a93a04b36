"""``sharectl consumption examples``."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.epilog = (
        "to try one: sharectl consumption examples minimum-charge | sharectl consumption render -"
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="print this one, as YAML for `render`"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def run(arguments: argparse.Namespace) -> int:
    """Print the examples, a line each, or the one that was named."""
    from sharectl.consumption.examples import example, examples
    from sharectl.report import as_json

    if arguments.name is None:
        found = examples()
        if arguments.json:
            print(as_json.dumps("consumption_examples", {"examples": found}))
        else:
            width = max(map(len, found))
            print("\n".join(f"{name:{width}}  {holds}" for name, holds in found.items()))
        return 0
    text = example(arguments.name)
    if arguments.json:
        print(as_json.dumps("consumption_example", {"name": arguments.name, "yaml": text}))
    else:
        print(text, end="")
    return 0
