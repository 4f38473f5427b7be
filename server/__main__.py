"""Owns the entry: arguments to the command line. Never imported by anything."""

from __future__ import annotations

import sys


def main() -> int:
    """Run `odyssey`; the exit code."""
    from server.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
