"""Runs `.mlir` tests inside the pytest process: no shell, no subprocess, one import of the tools.

A test is a file with `// RUN:` lines, each a pipeline of the project's tools that usually ends in
`filecheck`. `run_lines` parses them, `execute` runs them, `bless` rewrites expected output, `plugin` holds
the pytest hooks.
"""
