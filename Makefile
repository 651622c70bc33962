# make run    sets everything up and opens the app       make test   sets everything up and passes all tests
# make check  lint, types, borders                       make bench  medians of what must be quick
# make venv   the environment only                       make accuracy  predicted against published measurements
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8501

.DEFAULT_GOAL := help
.PHONY: help venv run test check bench accuracy screenshots chromium clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

$(VENV)/.installed: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Plimsoll needs Python 3.11 or newer: install it, or run make with PYTHON=/path/to/python3."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

venv: $(VENV)/.installed  ## the environment only

run: venv  ## set up and open the app on its embedded catalogue (PORT=8501)
	@$(BIN)/python -m compileall -q app.py calc pages  # else the first visitor waits for it
	$(BIN)/streamlit run app.py --server.port $(PORT)

chromium: venv
	$(BIN)/python tests/browser/chromium.py

test: venv chromium  ## set up and pass all tests, browser tests included
	$(BIN)/python -m pytest -q -n 2 -m "not browser"
	$(BIN)/python -m pytest -q -m browser tests/browser || $(BIN)/python -m pytest -q -m browser tests/browser --last-failed  # a browser may stumble once

check: venv  ## lint, types, import contract, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

bench: venv  ## medians of what must be quick
	$(BIN)/python tests/bench.py

accuracy: venv  ## predicted against published measurements, row by row
	$(BIN)/python tests/accuracy.py

screenshots: venv chromium  ## make the README's pictures from the running app
	$(BIN)/python tests/browser/screenshots.py

clean:  ## remove what was made here
	rm -rf $(VENV) .oracle-venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info

include tests/oracle/oracle.mk
