"""Job of ``sharectl tune --on-pool`` on an execute point: one simulation, from JSON to JSON.

A script that stands alone: it runs before sharectl can be imported, which comes with it as an
archive. `first` in the archive goes before the node's own packages, `last` behind them.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

UNPACKED = "sharectl-package"


def main(package: str, question: str, answer: str) -> int:
    """Write the answer to a question; the exit code is 0 if asking again would change nothing."""
    code = 0
    try:
        with zipfile.ZipFile(package) as archive:
            archive.extractall(UNPACKED)
        sys.path.insert(0, str(Path(UNPACKED, "first").resolve()))
        sys.path.append(str(Path(UNPACKED, "last").resolve()))
        from sharectl.sim.trial import answer_of

        content = answer_of(json.loads(Path(question).read_text(encoding="utf-8")))
    except ImportError as error:
        content = {
            "problem": f"{error} (Python {sys.version.split()[0]} at {sys.executable}); name with "
            "--python one that has it on every node"
        }
    except Exception as error:  # noqa: BLE001 - the access point reports it, and has it tried again
        content, code = {"problem": f"{type(error).__name__}: {error}"}, 1
    Path(answer).write_text(json.dumps(content), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
