#!/usr/bin/env bash
# Prepares what the editor suites need, outside the clone: npm packages by lock file, the workbench. Idempotent; sourced by run.sh.
# After it: ODYSSEY_CACHE, CODE_SERVER, CODE_SERVER_NODE, CHROMIUM are set.
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
export ODYSSEY_CACHE="${ODYSSEY_CACHE:-$HOME/.cache/odyssey}"
export CHROMIUM="${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}"
[ -x "$CHROMIUM" ] || export CHROMIUM=""

# node_modules of the client, once per lock file, linked into the two folders that import from it.
install_packages() {
  local key store
  key="$(sha256sum "$root/vscode-client/package-lock.json" | cut -c1-16)"
  store="$ODYSSEY_CACHE/npm-$key"
  if [ -d "$root/vscode-client/node_modules" ] && [ ! -L "$root/vscode-client/node_modules" ]; then
    store="$root/vscode-client"
  elif [ ! -f "$store/.ready" ]; then
    rm -rf "$store"; mkdir -p "$store"
    cp "$root/vscode-client/package.json" "$root/vscode-client/package-lock.json" "$store/"
    (cd "$store" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) && touch "$store/.ready"
  fi
  [ "$store" = "$root/vscode-client" ] || ln -sfn "$store/node_modules" "$root/vscode-client/node_modules"
  [ -e "$here/node_modules" ] && [ ! -L "$here/node_modules" ] || ln -sfn "$store/node_modules" "$here/node_modules"
}

install_workbench() {
  bash "$here/install-workbench.sh" "$ODYSSEY_CACHE/workbench"
  export CODE_SERVER="$ODYSSEY_CACHE/workbench/node_modules/code-server/out/node/entry.js"
  export CODE_SERVER_NODE="$ODYSSEY_CACHE/workbench/node24/bin/node"
}
