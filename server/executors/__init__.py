"""Places where jobs run, all behind skills.ports.Evaluator."""
