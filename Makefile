# From a fresh clone this needs Python 3.11 or later, and Java 17 or later for what runs a ZooKeeper.

.DEFAULT_GOAL := help
.PHONY: help demo test lint simulate bench soak wheel-check requirements clean java

# What demo keeps its metadata in: zookeeper or memory.
STORE ?= zookeeper
# Which random runs simulate makes.
SEEDS ?= 1..200
# How many processes test uses: most of what tests do is wait for other processes.
WORKERS ?= 3
# More options for what demo, test and bench run: make test ARGS="-k wire".
ARGS ?=

BIN := .venv/bin
INSTALLED := .venv/.installed
PACKAGES := actors transport controller broker spark_bridge
JAVA_IS_MISSING := Java 17 or later is not installed: apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)

export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
# Tests start very many processes of this program, and each would compile anew what it imports.
export PYTHONDONTWRITEBYTECODE :=

# Whether the java of JAVA_HOME, else the one on PATH, is 17 or later.
HAVE_JAVA = java="$${JAVA_HOME:+$$JAVA_HOME/bin/java}"; [ -x "$$java" ] || java=java; \
	major=$$("$$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p'); [ "$${major:-0}" -ge 17 ]

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r target does; do \
		printf '  make %-14s%s\n' "$$target" "$$does"; done

demo: $(if $(filter memory,$(STORE)),,java) $(INSTALLED) ## a cluster that moves a replica set; STORE=memory needs no Java
	@$(BIN)/klamm demo --store $(STORE) $(ARGS)

test: $(INSTALLED) ## all tests; those on ZooKeeper are skipped where there is no Java
	@$(HAVE_JAVA) || echo "$(JAVA_IS_MISSING); the tests on ZooKeeper are skipped"
	@$(BIN)/python -m pytest -q -rfEs -n $(WORKERS) --dist worksteal $(ARGS)

lint: $(INSTALLED) ## style, types, imports, and what would break replay
	@failed=; for check in "ruff check --quiet" "ruff format --check --quiet" mypy "lint-imports --no-logo" \
		"python -m tests.house.set_order $(PACKAGES)"; do \
		echo "== $$check"; $(BIN)/$$check || failed=yes; done; [ -z "$$failed" ]

simulate: $(INSTALLED) ## clusters with faults on virtual time, drawn from the seeds SEEDS=1..200
	@$(BIN)/klamm simulate --seeds $(SEEDS)

soak: java $(INSTALLED) ## properties with 1,000 examples each and more, a quarter of an hour of kills, great moves and plans
	@$(BIN)/python -m pytest -q -m "hypothesis or soak" --hypothesis-profile=soak -o faulthandler_timeout=0 $(ARGS)
	@$(BIN)/python -m tests.cluster.kills_and_pauses
	@$(BIN)/python -m tests.cluster.test_great_move
	@$(BIN)/python -m tests.spark.kernel.against_optimum
	@$(BIN)/python benchmarks/planning.py --large

bench: java $(INSTALLED) ## the rates that docs and README quote, measured here
	@for benchmark in benchmarks/*.py; do $(BIN)/python $$benchmark || exit 1; done

wheel-check: $(INSTALLED) ## build the wheel, install it without PySpark in a clean environment, and run the demo from it
	@$(BIN)/python -m tests.house.wheel

requirements: $(INSTALLED) ## the requirements that no test claims, and finished ones that lack a test
	@$(BIN)/python -m tests.house.requirements

clean: ## remove .venv and whatever was built or cached
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find $(PACKAGES) tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

java:
	@$(HAVE_JAVA) || { echo "$(JAVA_IS_MISSING)" >&2; exit 1; }

$(INSTALLED): pyproject.toml
	@python=; for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			python=$$candidate; break; fi; done; \
	if [ -z "$$python" ]; then \
		echo "Python 3.11 or later was not found: install it, or name one with PYTHON=..." >&2; exit 1; fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
			echo "$$python cannot make a virtual environment: apt-get install python3-venv" >&2; exit 1; fi; \
		echo "installing into .venv: about 600 MB to download, once, nearly all of it PySpark"; \
		"$$python" -m venv --clear .venv; fi; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' && touch $@
