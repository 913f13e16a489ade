# Two commands, each enough on its own after `git clone`: `make demo` and `make test`.
# VENV is the environment, PYTHON (3.11 or later) makes it. ARGS goes to the demo or to pytest, WORKERS run the tests.

VENV ?= .venv
PYTHON ?= python3
ARGS ?=
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --require-virtualenv
export VENV

.PHONY: help demo test check bench clean distclean
.DEFAULT_GOAL := help

help:
	@echo "make demo    install into $(VENV) and run 'squtr demo'"
	@echo "make test    install into $(VENV), then lint, types, import rules and the whole test suite"
	@echo "make check   lint, types and import rules only"
	@echo "make bench   speed and memory against peers"
	@echo "make clean   remove caches and build outputs;  make distclean   also remove $(VENV)"

demo: $(VENV)/.squtr-demo
	$(BIN)/squtr demo $(ARGS)

test: check
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(VENV)/.squtr-dev
	scripts/check

bench: $(VENV)/.squtr-bench
	@set -e; for file in scripts/speed/[a-z]*.py; do echo "$$file"; $(BIN)/python "$$file"; done

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "squtr needs Python 3.11 or later. Run: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# A stamp says what is installed; a change to what it depends on installs again. The development environment holds all
# that the demo needs, so it leaves both stamps.
$(VENV)/.squtr-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[demo]'
	@touch $@

$(VENV)/.squtr-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	# Without what it requires: all but triton is installed, and that (286 MB) is for word timestamps on CUDA alone.
	$(PIP) install --no-deps openai-whisper==20250625
	@touch $(VENV)/.squtr-demo $@

$(VENV)/.squtr-bench: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[bench]'
	@touch $(VENV)/.squtr-demo $@

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find dataset_cards harness leaderboard loaders scripts src tests -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV)
