# Each target does its own set-up; needed: Python 3.11 or newer, and make.
.DEFAULT_GOAL := help
.PHONY: help demo test lint docs status screenshot perf clean FORCE

VENV := .venv
DEMO_VENV := .cache/demo-venv
DOCS_VENV := .cache/docs-venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PERF_READY := $(VENV)/.ready-perf
DEMO_READY := $(DEMO_VENV)/.ready
DOCS_READY := $(DOCS_VENV)/.ready
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet --quiet

# The first interpreter that is new enough; override with `make PYTHON=/path/to/python test`.
PYTHON ?= $(shell for one in python3.11 python3.12 python3.13 python3 python; do \
  if $$one -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$one; break; fi; done)

# An environment knows the folder it was made in; a moved clone makes a new one.
stale = $(if $(filter $(CURDIR),$(shell cat $(1)/.made-in 2>/dev/null)),,FORCE)

define make-venv
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or run make PYTHON=/path/to/python" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("$(PYTHON) is Python %d.%d, but 3.11 or newer is needed" % v[:2])'
	@test "$$(cat $(1)/.made-in 2>/dev/null)" = "$(CURDIR)" || { rm -rf $(1) && "$(PYTHON)" -m venv $(1) && echo "$(CURDIR)" > $(1)/.made-in; } \
	  || { rm -rf $(1); echo "$(PYTHON) -m venv failed: on Debian install python3-venv" >&2; exit 2; }
endef

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

demo: $(DEMO_READY)  ## build, run, score and report a simulated benchmark; no download of data, no key
	@rm -rf demo
	@$(DEMO_VENV)/bin/sonogauge demo --out demo

test: lint  ## everything CI runs: lint, types, import rules, status page, all tests
	@echo "== status page"
	@$(BIN)/python -m tests.status --check
	@echo "== tests"
	@$(BIN)/python -m pytest -n auto

lint: $(READY)  ## ruff, mypy, import-linter, prompt lint
	@echo "== ruff"
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@echo "== mypy"
	@$(BIN)/python -m mypy
	@echo "== imports"
	@$(BIN)/lint-imports --no-logo
	@echo "== prompts"
	@$(BIN)/python -m sonogauge.benchmarks.lint

docs: $(DOCS_READY)  ## build the documentation into site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --strict --quiet
	@echo "documentation: site/index.html"

status: $(READY)  ## write docs/status.md from the test markers
	@$(BIN)/python -m tests.status

screenshot: $(READY)  ## write docs/screenshot.png from the page of the demo, in a real Chromium
	@$(BIN)/python -m tests.browser.screenshot

perf: $(PERF_READY)  ## every benchmark against its peers; fails if one misses its goals
	@failed=; for file in perf/[a-z]*.py; do echo "== $$file"; $(BIN)/python "$$file" || failed="$$failed $$file"; done; \
	  if [ -n "$$failed" ]; then echo "missed a goal:$$failed" >&2; exit 1; fi

clean:  ## remove environments, caches and the demo's files
	rm -rf $(VENV) .cache build dist site demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests perf -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml $(call stale,$(VENV))
	$(call make-venv,$(VENV))
	@echo "installing sonogauge with its test and development tools into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e '.[test,dev,inspect,local,segment,bertscore,medical,ray,figures,docs]'
	@touch $@

$(PERF_READY): $(READY)
	@echo "installing the peers into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e '.[perf]'
	@touch $@

# Not editable: the demo shows that the package alone is complete.
$(DEMO_READY): pyproject.toml $(call stale,$(DEMO_VENV)) $(shell find src -type f -not -path '*/__pycache__/*' | sed 's/ /\\ /g')
	$(call make-venv,$(DEMO_VENV))
	@echo "installing sonogauge into $(DEMO_VENV)"
	@$(DEMO_VENV)/bin/python $(PIP_INSTALL) .
	@touch $@

$(DOCS_READY): pyproject.toml $(call stale,$(DOCS_VENV))
	$(call make-venv,$(DOCS_VENV))
	@echo "installing sonogauge with its documentation tools into $(DOCS_VENV)"
	@$(DOCS_VENV)/bin/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@
