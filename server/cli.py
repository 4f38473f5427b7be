"""Owns the command line: which commands there are, and their help. Each command's work is in a module of its own.

Never imports the language server's libraries before `odyssey lsp` is asked for.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence

from server.host import Host

DESCRIPTION = """\
Odyssey judges GPU kernels: correct, how fast, and why.

  odyssey eval softmax.py            judge the kernels of a file
  odyssey eval softmax.py::kernel    judge one of them
  odyssey check src/                 what the text alone shows
  odyssey propose softmax.py         look for a faster text of a kernel
  odyssey watch .                    judge on every change
  odyssey doctor                     what is missing on this machine
  odyssey lsp                        the language server, for editors
"""

LATER = ("server.ledger.commands", "server.commands_more", "server.cli_propose")
"""Modules that bring further commands by `register(subparsers)`; each is imported only for the command line."""


def run(arguments: Sequence[str]) -> int:
    """Parse and do; the exit code."""
    host = Host()
    parser = build_parser(only_lsp=list(arguments[:1]) == ["lsp"])
    options = parser.parse_args(list(arguments))
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options, host) or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output is gone; nothing more to say
        return 0


def build_parser(*, only_lsp: bool = False) -> argparse.ArgumentParser:
    """All commands. An editor's server needs one of them, and not what the others import."""
    parser = argparse.ArgumentParser(
        prog="odyssey", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_lsp(commands)
    if only_lsp:
        return parser
    for name in ("server.cli_eval", "server.cli_check", "server.cli_watch", "server.cli_doctor"):
        importlib.import_module(name).register(commands)
    for name in LATER:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).register(commands)
    return parser


def _add_lsp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "lsp",
        help="run the language server (editors start this)",
        description="Run the language server on stdin and stdout, or on a loopback port.",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--stdio", action="store_true", help="talk on stdin and stdout (the default)")
    how.add_argument("--tcp", type=_port, metavar="PORT", help="listen on 127.0.0.1:PORT, 0 for any free port")
    parser.set_defaults(run=_lsp)


def _lsp(options: argparse.Namespace, host: Host) -> int:
    app = importlib.import_module("server.app")
    return int(app.serve_stdio(host) if options.tcp is None else app.serve_tcp(host, options.tcp))


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: that takes longer than the rest of the start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        metadata = importlib.import_module("importlib.metadata")
        print(f"odyssey {metadata.version('odyssey-lsp')}")
        parser.exit()
