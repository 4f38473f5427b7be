"""The pygls language server and our custom messages."""
