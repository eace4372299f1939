"""From one level to the next, and the named pipelines; only the modules fx_* know torch."""
