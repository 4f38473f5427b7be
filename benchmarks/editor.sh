#!/usr/bin/env bash
# What the VS Code client costs, in the real workbench. usage: editor.sh [--out FILE] [--quick]     about 5 minutes
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/e2e/setup.sh
install_packages
install_workbench
export ODYSSEY_VSIX="$PWD/test-results/odyssey.vsix"
(cd vscode-client && node scripts/vsix.mjs "$ODYSSEY_VSIX")
exec node benchmarks/editor.mjs "$@"
