"""``python -m rnnlab`` is the ``rnnlab`` command."""

import sys

from rnnlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
