"""The ``rnnlab`` command, also as ``python -m rnnlab``."""

import os
import sys
import warnings
from pathlib import Path

_LIBRARY = Path(__file__).parent
_FORMAT = warnings.formatwarning


def main() -> int:
    """Run the command with the arguments of the process. Ctrl-C ends it quietly, even during imports."""
    _open_closed_files()
    try:
        warnings.formatwarning = _formatted
        from rnnlab import cli

        return cli.main()
    except KeyboardInterrupt:
        print("rnnlab: interrupted", file=sys.stderr)
        return 130


def _open_closed_files() -> None:
    """Open the null device in place of closed standard files, so that no other file gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # open takes the lowest free number


def _formatted(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning as the command shows it: the library's own warnings are one line without a location."""
    if category is RuntimeWarning and _LIBRARY in Path(filename).parents:
        return f"rnnlab: {message}\n"
    return _FORMAT(message, category, filename, lineno, line)


if __name__ == "__main__":
    sys.exit(main())
