# Every target works on a fresh checkout: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help run test lint format bench screenshots faults simulate mutations histories soak clean

help: ## List the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready: pyproject.toml
	@echo "setting up $(VENV), which takes half a minute …" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[service]' --group dev
	@touch $@

$(VENV)/.service: pyproject.toml
	@echo "setting up $(VENV), which takes half a minute …" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[service,postgres,redis]'
	@touch $@

run: $(VENV)/.service ## Start the job service on http://localhost:8080
	$(BIN)/jobpipe serve $(ARGS)

# Half as many again as there are cores: many tests wait, for real processes and servers, rather than work.
WORKERS_OF_TESTS = $(shell echo $$(( $$(nproc 2>/dev/null || echo 4) * 3 / 2 )))

test: $(VENV)/.ready ## Run the tests (ARGS="-k name" to choose)
	$(BIN)/python -m pytest -n $(WORKERS_OF_TESTS) --dist worksteal $(ARGS)

faults: $(VENV)/.ready ## Kill, freeze and cut off the real program, each fault on every store
	ALL_STORES=1 $(BIN)/python -m pytest -n $(WORKERS_OF_TESTS) tests/faults $(ARGS)

lint: $(VENV)/.ready ## Check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.ready ## Format the code and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.ready ## Run the benchmarks (CASE=name for one)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m bench $(CASE)

screenshots: $(VENV)/.ready ## Make the pictures of the dashboard anew (needs chromium)
	$(BIN)/python -m tests.browser.screenshots

simulate: $(VENV)/.ready ## Simulate processes under faults (SECONDS=60, SEED=n for one life, STORE=memory)
	$(BIN)/python -m tests.simulation --seconds $(or $(SECONDS),60) --store $(or $(STORE),memory) $(if $(SEED),--seed $(SEED)) $(ARGS)

mutations: $(VENV)/.ready ## Take out what the promises rest on, and see the tests fail (ONLY=memory for some)
	$(BIN)/python -m tests.mutations --only "$(ONLY)"

histories: $(VENV)/.ready ## Real programs under random faults, and a checker (SECONDS=60 a store, STORE=name, SEED=n)
	$(BIN)/python -m tests.histories --seconds $(or $(SECONDS),60) $(if $(STORE),--store $(STORE)) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak: $(VENV)/.ready ## Load and restarts, and nothing grows (MINUTES=10 a store, STORE=name, SENDS=10000000, SEED=n)
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),10) $(if $(STORE),--store $(STORE)) $(if $(SENDS),--sends $(SENDS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

clean: ## Remove what the targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
