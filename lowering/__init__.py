"""From one level to the next, the border to torch's graphs, and the named pipelines."""
