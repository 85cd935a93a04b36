"""``python -m sharectl``: the same as the command ``sharectl``."""

from sharectl.cli.main import command

if __name__ == "__main__":
    command()
