"""One adapter a file: where a candidate goes and how an evaluator's exit code and output are read."""
