"""Child processes: spawning, killing, and frames over pipes."""
