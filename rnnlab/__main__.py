"""The ``rnnlab`` command, also as ``python -m rnnlab``."""

import sys


def main() -> int:
    """Run the command with the arguments of the process; Ctrl-C ends it quietly from the first import on."""
    try:
        from rnnlab import cli

        return cli.main()
    except KeyboardInterrupt:
        print("rnnlab: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
