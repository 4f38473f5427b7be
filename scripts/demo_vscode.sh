#!/usr/bin/env bash
# Opens the real VS Code workbench on loopback with the extension installed and the examples as its folder, ready to type in.
# PORT=8931 by default. Ctrl+C ends it. Nothing of it is kept but the downloads in ODYSSEY_CACHE.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v npm >/dev/null || { echo "make demo-vscode needs Node 20 or newer with npm" >&2; exit 1; }
. tests/e2e/setup.sh
root="$PWD"
echo "preparing the workbench (about a minute the first time)"
install_packages
install_workbench
vsix="$root/test-results/odyssey.vsix"
(cd vscode-client && node scripts/vsix.mjs "$vsix")
exec node tests/e2e/demo.mjs "$vsix" "$root/examples" "$root/.venv/bin" "${PORT:-8931}"
