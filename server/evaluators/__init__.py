"""A task's own judge: an organiser's script, run unmodified in the sandbox; its verdict is the only one there."""
