# Everything people and CI run, from the same place. Needs Python 3.11 or later with venv, make and git.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/
STAMP := $(VENV)/.ready

.PHONY: setup demo test check bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh $(VENV)
	@touch $@

demo: setup
	@rm -rf demo
	@$(RUN)equipoise demo --out demo

check: setup
	@$(RUN)ruff format --check --quiet src tests benchmarks
	@$(RUN)ruff check --quiet src tests benchmarks
	@$(RUN)mypy --no-error-summary
	@$(RUN)lint-imports --no-logo > .lint-imports.log || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log
	@echo "check: format, lint, types and import contracts hold"

test: check
	@$(RUN)python -m pytest -n 2 --dist loadgroup --doctest-modules src tests

bench: setup
	@$(RUN)python -m benchmarks

clean:
	@rm -rf demo dist build bench-results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
