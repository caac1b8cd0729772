# Needs Python 3.11 or newer with venv, and make. Everything else is installed into .venv, pinned by constraints.txt.

VENV   := .venv
BIN    := $(VENV)/bin
ALONE  := $(VENV)/.installed-alone
STAMP  := $(VENV)/.installed
SOURCES = worker store stream ops
# The first interpreter that really starts and is new enough: version managers leave shims that do not.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
PYTEST  ?= $(BIN)/python -m pytest
ARGS    ?=
# Most tests wait for processes and servers, so more of them run at once than there are cores.
JOBS    ?= 4
SECONDS ?= 120
INSTALL  = -m pip install -qq --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test check fmt lua fuzz contract matrix pythons chaos partition bench dist clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## install everything into .venv; quick when nothing changed

$(ALONE): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 found. Name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing toolonce into $(VENV) ..."
	@$(BIN)/python $(INSTALL) pip
	@$(BIN)/python $(INSTALL) --build-constraint constraints.txt -e .
	@touch $@

$(STAMP): $(ALONE)
	@echo "Installing what tests and checks need ..."
	@$(BIN)/python $(INSTALL) --build-constraint constraints.txt --group test --group sdk --group check
	@touch $@

demo: $(ALONE) ## run the whole path on an embedded server, with recorded streams and a killed worker
	@$(BIN)/toolonce demo

test: setup ## run all tests, JOBS=4 at once; narrow with ARGS="tests/store -x"
	@$(PYTEST) -n $(JOBS) --dist loadscope $(ARGS)

check: setup ## lint, format, types, import borders, sizes: what CI asks of the text
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_sizes.py
	$(BIN)/python scripts/check_words.py
	$(BIN)/python scripts/check_lua.py

fmt: setup ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lua: setup ## print the Lua scripts as the server gets them; ARGS="claim" for one
	@$(BIN)/python scripts/print_lua.py $(ARGS)

fuzz: setup ## run the property tests with a hundred times the examples
	$(PYTEST) -m hypothesis --hypothesis-profile=fuzz --timeout=0 $(ARGS)

contract: setup ## ask the live providers whose keys are set and record what they send; costs a few tokens
	$(PYTEST) -rs tests/stream/decoding/test_live_contract.py $(ARGS)

matrix: setup ## try every crash point with every death, and write docs/crash-matrix.md
	$(BIN)/python -m tests.crash.matrix docs/crash-matrix.md

pythons: ## run all tests on every Python of PYTHONS that is installed
	@for python in $(PYTHONS); do \
		$$python -c '' >/dev/null 2>&1 || { echo "== $$python is not installed: skipped"; continue; }; \
		echo "== $$python"; venv=.cache/python-$$(basename $$python); \
		$(MAKE) --no-print-directory test PYTHON=$$python VENV=$$venv || exit 1; \
	done

chaos: setup ## kill workers and servers at random for SECONDS and count the effects
	$(BIN)/python -m tests.crash.chaos --seconds $(SECONDS) $(ARGS)

partition: setup ## cut the primary off together with a worker, and count what was entered twice; ARGS="--two --runs 10"
	$(BIN)/python -m tests.crash.partition $(ARGS)

bench: setup ## calls per second against RQ's own worker, on one fsyncing server
	$(BIN)/python benchmarks/worker.py

dist: setup ## build the sdist, and the wheel from it
	rm -rf build dist
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build

clean: ## remove what this file made
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
