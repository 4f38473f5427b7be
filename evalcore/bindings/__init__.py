"""How a kernel on disk is bound to its reference: one file per task format, read with `ast`, never imported."""
