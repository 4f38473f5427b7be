"""The append-only record of every measurement."""
