"""``python -m plateflow``: the command line, inside this interpreter.

The program also comes here by itself where its Python has no libpython.so.
"""

import os
import sys

from plateflow import _core, _stdio


def main() -> int:
    """Run the command line and return its exit status."""
    os.environ.pop("PLATEFLOW_REEXEC", None)
    _stdio.install()
    # Not adopted: the process is plateflow's, with its signals and output.
    status, message = _core.main(["plateflow", *sys.argv[1:]], False)
    if message:
        print(message, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
