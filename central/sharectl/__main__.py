"""``python -m sharectl``: the same as the command ``sharectl``."""

import sys

from sharectl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
