"""The command line: what `anchorhood` on PATH calls."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line of the library, and ends with its exit code."""
    from . import _native

    # Commands that can be stopped have a way of their own; all others end at once, as programs do.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command_line(["anchorhood", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
