# Everything people and CI run, from the same place. Needs Python 3.11 or later with venv, make and git.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/
STAMP := $(VENV)/.ready
# Some images forbid bytecode, and every process of the suite would then compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test check bench evidence redteam torture docs pictures bundle clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh $(VENV)
	@touch $@

demo: setup
	@rm -rf demo
	@$(RUN)equipoise demo --out demo

check: setup
	@$(RUN)ruff format --check --quiet src tests benchmarks tools torture
	@$(RUN)ruff check --quiet src tests benchmarks tools torture
	@$(RUN)mypy --no-error-summary
	@$(RUN)lint-imports --no-logo > .lint-imports.log || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log
	@echo "check: format, lint, types and import contracts hold"

test: check
	@$(RUN)python -m pytest -n auto --dist loadgroup --doctest-modules src tests

bench: setup
	@$(RUN)python -m benchmarks

evidence: setup
	@$(RUN)python -m benchmarks.evidence

redteam: setup
	@$(RUN)python tools/attacks_table.py

# Bad input of every kind and kills of every verb from a seed, for so many minutes: one table, and for each fault the line that repeats it.
MINUTES ?= 5
torture: setup
	@$(RUN)python -m torture --minutes $(MINUTES) $(if $(SEED),--seed "$(SEED)") $(if $(COUNT),--count $(COUNT)) \
	    $(if $(KILLS),--kills $(KILLS))

# Not --quiet: that hides the warnings which --strict counts.
docs: setup
	@$(RUN)properdocs build --strict
	@echo "docs: open dist/docs/index.html"

pictures: setup
	@$(RUN)python tools/pictures.py
	@$(RUN)python tools/workbench_pictures.py

# For machines without a network: EXTRAS="files duckdb" (all but spark unless named), OUT=folder, and for other machines
# PLATFORM=windows|macos|macos-intel|linux|linux-arm PYTHON_VERSION=3.12
OUT ?= dist/bundle
bundle: setup
	@$(RUN)python tools/bundle.py --out "$(OUT)" $(if $(filter undefined,$(origin EXTRAS)),,--extras "$(EXTRAS)") \
	    $(if $(PLATFORM),--platform "$(PLATFORM)") $(if $(PYTHON_VERSION),--python-version "$(PYTHON_VERSION)")

clean:
	@rm -rf demo dist build bench-results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
