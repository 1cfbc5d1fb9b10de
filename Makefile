# Everything here works from a fresh checkout with Python 3.11 or newer, git and make.
#
#   make run      train the digits example
#   make test     run the tests
#   make test-elsewhere   run the tests as other machines would: other kernels, threads, orders, last bits
#   make lint     ruff check, ruff format --check
#   make types    mypy; then mypy and pyright on programs for which the package is torch
#   make oracle   install torch and run the tests that compare with it
#   make opdb     install torch and run a fixed part of its table of operations on both libraries
#   make moduledb install torch and run a fixed part of its table of modules on both libraries
#   make libraries install libraries of others, without torch, into .venv-libraries and run a job of each
#   make docs     build the documentation site into site/
#   make dist     build the wheel and the source distribution into dist/
#   make stubs    write the .pyi files from the table of operations
#   make clean    remove .venv and what the tools left behind
#
# Another Python:  make test PYTHON=python3.12   (after make clean)

# Containers set it. The tests start hundreds of processes, and each would compile all that it imports (0.6 s of processor
# time for `import retrograd` instead of 0.25).
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
TORCH ?= torch==2.13.0 expecttest
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# A stamp says "done since pyproject.toml last changed". The package is installed in editable mode, so
# changes of its source need no new install.
CREATED := $(VENV)/.stamp-created
EXAMPLES := $(VENV)/.stamp-examples
LIBRARIES := .venv-libraries
DEV := $(VENV)/.stamp-dev
ORACLE := $(VENV)/.stamp-oracle
TYPES := $(VENV)/.stamp-types
DOCS := $(VENV)/.stamp-docs

.PHONY: run test test-elsewhere lint types oracle opdb moduledb libraries stubs docs dist clean
.NOTPARALLEL: # two pips in one environment would disturb each other

run: $(EXAMPLES)
	$(BIN)/retrograd run examples/digits.py

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist worksteal -q

test-elsewhere: $(DEV)
	$(BIN)/python -m tests.elsewhere

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TYPES)
	$(BIN)/mypy
	$(BIN)/python -m tests.type_checking

oracle: $(DEV) $(ORACLE)
	$(BIN)/python -m pytest -n auto --dist worksteal -q -m oracle

opdb: $(DEV) $(ORACLE)
	$(BIN)/python -m tests.opdb --part
	$(BIN)/python -m tests.opdb --part --nn

moduledb: $(DEV) $(ORACLE)
	$(BIN)/python -m tests.moduledb --part

libraries: $(LIBRARIES)/.stamp
	$(LIBRARIES)/bin/python -m tests.libraries

stubs: $(DEV)
	$(BIN)/python tools/make_names.py
	$(BIN)/python tools/make_stubs.py

docs: $(DOCS)
	$(BIN)/python tools/make_site.py

dist: $(DEV)
	$(PIP) install build
	$(BIN)/python -m build --quiet

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "retrograd needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one:  make $(firstword $(MAKECMDGOALS) run) PYTHON=python3.12"; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(EXAMPLES): $(CREATED) pyproject.toml
	$(PIP) install --editable '.[examples]'
	@touch $@

$(DEV): $(CREATED) pyproject.toml
	$(PIP) install --editable '.[dev]'
	@touch $@ $(EXAMPLES) # dev contains examples

$(TYPES): $(CREATED) pyproject.toml
	$(PIP) install --editable '.[types]'
	@touch $@ $(DEV) $(EXAMPLES) # types contains dev

$(DOCS): $(CREATED) pyproject.toml
	$(PIP) install --editable '.[docs]'
	@touch $@

$(ORACLE): $(CREATED)
	$(PIP) install $(TORCH) # expecttest: what torch's own tables import
	@touch $@

$(LIBRARIES)/.stamp: tests/libraries/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps -r tests/libraries/requirements.txt
	$(LIBRARIES)/bin/python -m pip --disable-pip-version-check --quiet install --editable .
	@touch $@

clean:
	rm -rf $(VENV) $(LIBRARIES) build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis *.png
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
