"""What a compiled binary says about a kernel, without a GPU."""
