"""Things that only tests use."""
