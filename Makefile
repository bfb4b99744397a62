# `make` lists the targets. Everything runs in .venv, which `setup` makes from the hashed lock file.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup run test test-peers check format bench pictures soak audit lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install everything (PYTHON=… chooses the interpreter)
	@:

# A changed lock, a checkout that was moved or a PYTHON of one's own brings .venv up to date; else this costs nothing.
MOVED := $(filter-out $(CURDIR),$(shell cat $(STAMP) 2>/dev/null))
$(STAMP): requirements-dev.lock pyproject.toml scripts/setup.sh $(if $(PYTHON)$(MOVED),FORCE)
	@PYTHON="$(PYTHON)" sh scripts/setup.sh

FORCE:

run: $(STAMP) ## simulated gateway, Locust's web UI and the metrics exporter; Ctrl-C ends all
	@$(BIN)/python -m harness.demo

test: $(STAMP) ## run the tests (ARGS="-k sse" and the like go to pytest)
	@sh scripts/test.sh $(ARGS)

test-peers: $(STAMP) ## LiteLLM, aimock and the official SDKs against us; installed into .peers once
	@sh scripts/peers.sh
	@$(BIN)/pytest tests/peers $(ARGS)

check: $(STAMP) ## ruff and mypy, tests and benchmarks included; generated files are fresh
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/harness dashboards --check

format: $(STAMP) ## let ruff format the code and mend what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## run the benchmarks; they print ratios and judge nothing
	@set -e; for program in benchmarks/bench_*.py; do \
		[ -e "$$program" ] || { echo "bench: there is no benchmarks/bench_*.py" >&2; exit 1; }; \
		$(BIN)/python "$$program"; \
	done

soak: $(STAMP) ## half an hour with every fault mixed: does anything grow? (ARGS="--minutes 5", "--write docs/soak.md")
	@$(BIN)/python benchmarks/soak.py $(ARGS)

audit: $(STAMP) ## known vulnerabilities of what the lock file pins; asks a service on the network
	@$(BIN)/pip-audit --strict --require-hashes --disable-pip -r requirements-dev.lock

pictures: $(STAMP) ## draw docs/pictures/ from a simulated run (needs npm, chromium, prometheus)
	@$(BIN)/python scripts/pictures.py

lock: $(STAMP) ## write the lock files anew from pyproject.toml (UPGRADE=1: newest versions)
	@UPGRADE="$(UPGRADE)" sh scripts/lock.sh

clean: ## remove .venv, .peers, caches and build output (results stay)
	rm -rf $(VENV) .peers build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find harness tests -name __pycache__ -type d -prune -exec rm -rf {} +
