"""The command ``sharectl``, and ``python -m sharectl``; Ctrl-C is no traceback, however early."""

import os
import signal

INTERRUPTED = 130
"""As in `sharectl.errors`, which imports more."""


def end(*_signal_and_frame: object) -> None:
    """End this process, which has nothing to clean up yet."""
    os.write(2, b"sharectl: interrupted\n")
    os._exit(INTERRUPTED)


# A shell that starts it in the background may have it ignore Ctrl-C.
HEEDS_CTRL_C = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if HEEDS_CTRL_C:
    # Before other imports: a KeyboardInterrupt becomes another error within some of them.
    signal.signal(signal.SIGINT, end)


def command() -> None:
    """Run the command with the arguments of this process, and end it."""
    from sharectl.cli.main import run  # noqa: PLC0415

    run(heeds_ctrl_c=HEEDS_CTRL_C)


if __name__ == "__main__":
    command()
