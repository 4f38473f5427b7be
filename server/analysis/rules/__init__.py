"""One static rule a file."""
