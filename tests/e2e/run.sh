#!/usr/bin/env bash
# The editor suites. usage: run.sh [unit|host|ui|neovim|all]
# Where something that a suite needs is not on this machine it says "skipped: <suite>, <reason>" and goes on.
# Ends with one line "suite totals: N passed, M failed, K skipped".
set -uo pipefail
cd "$(dirname "$0")"
. ./setup.sh
suite="${1:-all}"
passed=0 failed=0 skipped=0
log="$(mktemp)"; trap 'rm -f "$log"' EXIT

skip() { echo "skipped: $1, $2"; skipped=$((skipped + 1)); }

# Add what the last suite printed: node's "# pass N" or "ℹ pass N", and "<suite>: N passed, M failed, K skipped".
count() {
  local p f s
  p=$(sed -nE 's/^(#|ℹ) pass ([0-9]+)$/\2/p; s/^(host tests|neovim): ([0-9]+) passed.*/\2/p' "$log" | awk '{n += $1} END {print n + 0}')
  f=$(sed -nE 's/^(#|ℹ) (fail|cancelled) ([0-9]+)$/\3/p; s/^(host tests|neovim): .* ([0-9]+) failed.*/\2/p' "$log" | awk '{n += $1} END {print n + 0}')
  s=$(sed -nE 's/^(#|ℹ) skipped ([0-9]+)$/\2/p; s/^(host tests|neovim): .* ([0-9]+) skipped.*/\2/p' "$log" | awk '{n += $1} END {print n + 0}')
  passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
  # A suite that ended badly without counting anything (a crash before the first test) is one failure.
  if [ "$1" -ne 0 ] && [ "$f" -eq 0 ]; then failed=$((failed + 1)); fi
}

run() {
  local name="$1"; shift
  echo "-- $name"
  local began=$SECONDS
  "$@" 2>&1 | tee "$log"
  count "${PIPESTATUS[0]}"
  echo "-- $name took $((SECONDS - began)) s"
}

wants() { [ "$suite" = all ] || [ "$suite" = "$1" ]; }
missing_node() {
  command -v node >/dev/null || { echo "node is not installed"; return; }
  command -v npm >/dev/null || { echo "npm is not installed"; return; }
  [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || echo "node is older than 20"
}
missing_python() { [ -x "$root/.venv/bin/python" ] || echo "there is no .venv (make setup)"; }

# What the client's suites need. Prints the reason when it cannot be had.
prepared=""
prepare_client() {
  [ -n "$prepared" ] && return 0
  install_packages > "$log" 2>&1 || { tail -5 "$log" >&2; return 1; }
  prepared=yes
}
prepare_workbench() {
  install_workbench > "$log" 2>&1 || { tail -15 "$log" >&2; return 1; }
  export ODYSSEY_VSIX="$root/test-results/odyssey.vsix"
  (cd "$root/vscode-client" && node scripts/vsix.mjs "$ODYSSEY_VSIX")
}

reason="$(missing_node)"
if wants unit || wants host || wants ui; then
  if [ -n "$reason" ]; then
    for name in unit host ui; do wants "$name" && skip "$name" "$reason"; done
  elif ! prepare_client; then
    for name in unit host ui; do wants "$name" && skip "$name" "the npm packages could not be installed"; done
  else
    if wants unit; then run "client: types" bash -c 'cd "$1/vscode-client" && npm run -s check' _ "$root"; run "client: unit" bash -c 'cd "$1/vscode-client" && npm test --silent' _ "$root"; fi
    if wants host || wants ui; then
      if [ -z "$CHROMIUM" ]; then reason="Chromium is not installed"; else reason="$(missing_python)"; fi
      if [ -z "$reason" ] && ! prepare_workbench; then reason="the workbench or the .vsix could not be made"; fi
      if [ -n "$reason" ]; then
        for name in host ui; do wants "$name" && skip "$name" "$reason"; done
      else
        wants host && run "extension host" node exthost.mjs
        wants ui && run "workbench" node --test --test-reporter=spec ui.test.mjs
      fi
    fi
  fi
fi
if wants neovim; then
  reason="$(missing_python)"
  if [ -z "$reason" ] && [ ! -x "$root/.venv/bin/nvim" ] && ! command -v nvim >/dev/null; then reason="Neovim is not installed"; fi
  if [ -n "$reason" ]; then skip neovim "$reason"; else run neovim bash neovim/run.sh; fi
fi
echo "suite totals: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
