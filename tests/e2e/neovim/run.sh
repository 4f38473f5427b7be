#!/usr/bin/env bash
# Headless Neovim against the real server, in a copy of an example.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"; root="$(cd "$here/../../.." && pwd)"
nvim="${NVIM:-$root/.venv/bin/nvim}"; [ -x "$nvim" ] || nvim="$(command -v nvim)"
work="$(mktemp -d)"; trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels" "$work/home"; cp "$root/examples/vector_add.py" "$work/kernels/"; : > "$work/kernels/odyssey.toml"
cd "$work/kernels"
HOME="$work/home" XDG_STATE_HOME="$work/home/.state" XDG_CONFIG_HOME="$work/home/.config" XDG_DATA_HOME="$work/home/.data" \
  ODYSSEY_SERVER="$root/.venv/bin/odyssey" ODYSSEY_PYTHON="$root/.venv/bin/python" \
  timeout 400 "$nvim" --headless -u NONE -i NONE vector_add.py -S "$here/check.lua"
