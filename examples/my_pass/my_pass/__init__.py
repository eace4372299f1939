"""An example of a package that extends inductile; see its README.md and pyproject.toml."""
