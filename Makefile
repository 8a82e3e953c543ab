# A fresh clone needs Python 3.11 or later, and Java 17 or later for targets that run a ZooKeeper.

.DEFAULT_GOAL := help
.PHONY: help demo test kafka-test lint simulate simulate-coverage simulate-corpus bench bench-compare bench-kafka soak docs wheel-check requirements clean java

# The metadata store of demo: zookeeper or memory.
STORE ?= zookeeper
# The seeds of simulate's random runs: the corpus, or a range such as 1..2000.
SEEDS ?= corpus
# The seeds of its random runs with brokers of Apache Kafka's; none for no such runs.
KAFKA_SEEDS ?= 1..50
# The seeds among which simulate-corpus chooses.
CANDIDATES ?= 1..2000
# The number of processes of test; most tests wait for other processes most of the time.
WORKERS ?= 2
# The revision with which bench-compare compares the current tree, the pairs of runs, and the rows: all, or some, such as
# ROWS="bulk_read controller_events:failover".
BASE ?=
PAIRS ?= 5
ROWS ?=
# More options for demo, test and soak: make test ARGS="-k wire".
ARGS ?=

BIN := .venv/bin
INSTALLED := .venv/.installed
DOCS_INSTALLED := .venv/.docs-installed
PACKAGES := actors transport spark_bridge broker controller simulator klamm
BENCHMARKS_WITH_KAFKA := $(wildcard benchmarks/kafka_*.py)
BENCHMARKS := $(filter-out $(BENCHMARKS_WITH_KAFKA),$(wildcard benchmarks/*.py))
JAVA_IS_MISSING := Java 17 or later is not installed: apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)

export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
# Tests start very many processes of this program, and each would compile anew what it imports.
export PYTHONDONTWRITEBYTECODE :=

# Succeeds if the java of JAVA_HOME, or else the one on PATH, is 17 or later.
HAVE_JAVA = java="$${JAVA_HOME:+$$JAVA_HOME/bin/java}"; [ -x "$$java" ] || java=java; \
	major=$$("$$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p'); [ "$${major:-0}" -ge 17 ]

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r target does; do \
		printf '  make %-18s%s\n' "$$target" "$$does"; done

demo: $(if $(filter memory,$(STORE)),,java) $(INSTALLED) ## a cluster that moves a replica set; STORE=memory needs no Java
	@$(BIN)/klamm demo --store $(STORE) $(ARGS)

test: $(INSTALLED) ## the tests; those on ZooKeeper are skipped without Java
	@$(HAVE_JAVA) || echo "$(JAVA_IS_MISSING); the tests on ZooKeeper are skipped"
	@$(BIN)/python -m pytest -q -rfEs -m "not soak and not real_kafka" -n $(WORKERS) --dist worksteal --slowest 30 $(ARGS)

kafka-test: java $(INSTALLED) ## the tests on real brokers of Apache Kafka, whose jars Maven fetches once into ~/.cache/klamm
	@$(BIN)/python -m tests.kafka.jars
	@$(BIN)/python -m pytest -q -rfEs -m "real_kafka and not soak" -n 2 --dist worksteal $(ARGS) tests/kafka

lint: $(INSTALLED) ## style, types, imports, and code that would break replay
	@failed=; for check in "ruff check --quiet" "ruff format --check --quiet" mypy "lint-imports --no-logo"; do \
		echo "== $$check"; $(BIN)/$$check || failed=yes; done; [ -z "$$failed" ]

simulate: $(INSTALLED) ## random clusters with faults, on virtual time; SEEDS=1..2000 for more
	@$(BIN)/klamm simulate --seeds $(SEEDS)
	@$(if $(KAFKA_SEEDS),$(BIN)/klamm simulate --kafka --seeds $(KAFKA_SEEDS))

simulate-coverage: $(INSTALLED) ## which branches and pairs of a round and a fault no run reaches; SEEDS=1..200
	@$(BIN)/python -m tests.simulation.reach $(SEEDS)

simulate-corpus: $(INSTALLED) ## choose the seeds that simulate runs, among CANDIDATES=1..2000
	@$(BIN)/python -m tests.simulation.reach $(CANDIDATES) --corpus 200

soak: java $(INSTALLED) ## the long tests: properties, planted bugs, mutants, a quarter of an hour of kills, large moves and plans
	@$(BIN)/python -m pytest -q -rfEs -m "hypothesis or soak" --hypothesis-profile=soak -o faulthandler_timeout=0 $(ARGS)
	@$(BIN)/python -m tests.wire.twenty_names
	@$(BIN)/python -m tests.cluster.kills_and_pauses
	@$(BIN)/python -m tests.cluster.test_great_move
	@$(BIN)/python -m tests.spark.shapes.against_optimum --simple --instances 75
	@$(BIN)/python benchmarks/planning.py --large
	@$(BIN)/python benchmarks/rollouts.py --million
	@$(BIN)/python -m tests.simulation.mutation.campaign
	@$(BIN)/python -m tests.simulation.planted_table

bench: java $(INSTALLED) ## measure the rates that README and docs quote
	@for benchmark in $(BENCHMARKS); do $(BIN)/python $$benchmark || exit 1; done

bench-compare: java $(INSTALLED) ## is this tree slower than BASE=revision? PAIRS=5, ROWS="bulk_read rollouts"
	@[ -n "$(BASE)" ] || { echo "name the revision to compare with: make bench-compare BASE=v1.0" >&2; exit 2; }
	@$(BIN)/python -m benchmarks.kit.compare "$(BASE)" $(BENCHMARKS) --pairs $(PAIRS) --rows "$(ROWS)"

bench-kafka: java $(INSTALLED) ## large events under Klamm and under Kafka's own controller; needs a JDK and kafka-test's jars
	@for benchmark in $(BENCHMARKS_WITH_KAFKA); do $(BIN)/python $$benchmark || exit 1; done

docs: $(DOCS_INSTALLED) ## the docs as a site in build/docs; fails on a broken link or a page outside the navigation
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel-check: $(INSTALLED) ## build the wheel, install it without PySpark in a clean environment, and run the demo from it
	@$(BIN)/python -m tests.house.wheel

requirements: $(INSTALLED) ## list requirements that no test claims; fails if a finished one lacks a test
	@$(BIN)/python -m tests.house.requirements

clean: ## remove .venv and all built or cached files
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

$(DOCS_INSTALLED): $(INSTALLED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' && touch $@
