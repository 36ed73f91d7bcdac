"""Find subjects by name, run checks, plan statistics, replay failures, write reproduction scripts."""
