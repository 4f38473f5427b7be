#!/usr/bin/env bash
# Makes .venv in the checkout with `odyssey` in it. Idempotent: a stamp over the requirement files makes a second run free.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV="${ODYSSEY_VENV:-.venv}"
PYTHON="${PYTHON:-python3}"
stamp="$VENV/.odyssey-setup"
want="$(cat requirements/*.txt pyproject.toml scripts/setup.sh | sha256sum | cut -d' ' -f1)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then exit 0; fi
say() { printf '\033[2m[setup] %s\033[0m\n' "$*"; }
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "odyssey needs Python 3.10 or newer; '$PYTHON' is $("$PYTHON" --version 2>&1 || echo absent). Set PYTHON=/path/to/python3 and run again." >&2
  exit 1
fi
if [ ! -x "$VENV/bin/python" ]; then
  # A torch that the machine already has is reused, so that nobody downloads several gigabytes twice.
  site=""
  if "$PYTHON" -c 'import torch, triton' 2>/dev/null; then site="--system-site-packages"; say "reusing the torch of $PYTHON"; fi
  say "making $VENV"
  "$PYTHON" -m venv $site "$VENV"
fi
pip() { "$VENV/bin/python" -m pip --disable-pip-version-check -q "$@" 2> >(grep -v 'is ignored: it is neither a file' >&2); }
if ! "$VENV/bin/python" -c 'import torch' 2>/dev/null; then say "installing torch (the largest part)"; pip install -r requirements/torch.txt; fi
if ! "$VENV/bin/python" -c 'import triton' 2>/dev/null; then say "installing triton"; pip install -r requirements/triton.txt; fi
say "installing the server, the test tools and the optional parts that tests use"
pip install -r requirements/dev.txt
pip install --no-deps -e .
echo "$want" > "$stamp"
say "done: $("$VENV/bin/python" -c 'import torch, triton, sys; print("Python", sys.version.split()[0], "torch", torch.__version__, "triton", triton.__version__)')"
