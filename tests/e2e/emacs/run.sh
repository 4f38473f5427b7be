#!/usr/bin/env bash
# Emacs eglot against the real server, in a copy of an example. Not part of `make test`: few machines have Emacs.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"; root="$(cd "$here/../../.." && pwd)"
work="$(mktemp -d)"; trap 'rm -rf "$work"' EXIT
cp "$root/examples/vector_add.py" "$work/"; : > "$work/odyssey.toml"
HOME="$work" ODYSSEY_SERVER="$root/.venv/bin/odyssey" ODYSSEY_PYTHON="$root/.venv/bin/python" ODYSSEY_FILE="$work/vector_add.py" \
  timeout 300 emacs --batch -l "$here/check.el"
