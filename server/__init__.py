"""The server process: state, workers, ledger, watcher and static analysis."""
