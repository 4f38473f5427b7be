"""Everything that needs torch or triton. Reached only from inside a worker's child process."""
