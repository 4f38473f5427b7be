#!/usr/bin/env bash
# Builds vscode-client/odyssey-VERSION.vsix with the server's wheel inside. Needs Node 20 and npm.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v npm >/dev/null || { echo "make vsix needs Node 20 or newer with npm" >&2; exit 1; }
. tests/e2e/setup.sh
install_packages
cd vscode-client
npm run -s vsix
