"""The LSP features, one a file."""
