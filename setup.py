"""The package list; everything static is in pyproject.toml.

The repository root is the package `inductile`, so setuptools' own discovery would install the
subpackages under bare names (`dialects`, `passes`, ...). This finds them and adds the prefix, which
spares an edit here for every new subpackage.
"""

from setuptools import find_packages, setup

LEVELS = ("machines", "dialects", "passes", "lowering", "backends", "tools")


def packages() -> list[str]:
    """Every importable package of the tree, e.g. `inductile.passes.loop`."""
    found = find_packages(".", include=[pattern for level in LEVELS for pattern in (level, f"{level}.*")])
    return ["inductile", *(f"inductile.{name}" for name in sorted(found))]


# Under PEP 517 the script is the build front end; named here, this file is kept out of the root package.
setup(script_name="setup.py", packages=packages())
