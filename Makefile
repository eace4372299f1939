# `make test` on a fresh Debian needs python3 (3.11 to 3.13) with venv, make and g++; it installs the rest in .venv.

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed

export OMP_WAIT_POLICY ?= passive
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start many processes, each of which would compile our Python again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv lint format types check test demo dist docs clean

help: ## list these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 12

# The stamp is newer than what decides the installed packages, so that repeated runs install nothing. Python compiles
# what is imported at its first import, a fifth of what is installed. The pip that comes with Python may be years old
# and resolve in twice the time; where no other can be had, it will do.
$(INSTALLED): pyproject.toml setup.py .ci/constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip || true
	$(BIN)/python -m pip install --quiet --no-compile --constraint .ci/constraints.txt --editable '.[test,lint,docs,gui]'
	mkdir -p .venv/typing
	ln -sfn '$(CURDIR)' .venv/typing/inductile
	touch $@

venv: $(INSTALLED) ## create .venv with the development environment

lint: venv ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: venv ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

types: venv ## check types
	$(BIN)/basedpyright

PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --import-mode=importlib

# Types are checked while the tests run: that takes one process for minutes, and tests begin with imports.
define with_types
@found=$$(mktemp); trap 'rm -f "$$found"' EXIT; \
{ $(BIN)/basedpyright >"$$found" 2>&1 || { cat "$$found"; false; }; } & types=$$!; \
status=0; $(1) || status=$$?; \
wait $$types || { echo; cat "$$found"; echo 'make types: failed, as shown above'; exit 1; }; \
exit $$status
endef

test: lint ## lint, types, and all tests; ARGS='...' is passed to pytest
	$(call with_types,$(PYTEST) $(ARGS))

check: lint ## the quick part: lint, types, and the tests of dialects, lowering and loop passes
	$(call with_types,$(PYTEST) -m "not slow and not gpu" tests/dialects tests/filecheck tests/lowering tests/passes/loop tests/*.py $(ARGS))

demo: venv ## compile a small model and show its stages
	$(BIN)/python examples/demo.py

dist: venv ## build sdist and wheel in dist/, with the version of the git tag
	$(BIN)/python -m build --no-isolation

docs: venv ## build the site in build/site; warnings are errors
	$(BIN)/mkdocs build --strict

clean: ## remove caches and build outputs, not .venv
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
