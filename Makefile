# Commands for working on stream_dedup and for trying it out. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# In the order of the folders: what takes longest comes first, and the others fill in. Tests on a broker wait half of
# the time, so there are twice as many workers as cores on a small machine.
PARALLEL := --numprocesses $(or $(WORKERS),4) --dist loadfile --no-loadscope-reorder
# Once, before the workers start: on a new machine each of them would compile all loops.
COMPILE := $(BIN)/python -m stream_dedup.ask.warming
REPORT_OUT = $(or $(OUT),out/evaluate-$(or $(NAME),people))
ENGINE ?= docker
ARCH = $(subst x86_64,amd64,$(subst aarch64,arm64,$(shell uname -m)))
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' stream_dedup/version.py)
OF_ARTICLES = $(if $(ARTICLES),--articles $(ARTICLES))
REVISION = $$(git rev-parse HEAD 2>/dev/null || echo unknown)
LOCK := --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet

help: ## Show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

setup: $(READY) ## Make the virtual environment from the lock file

$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stream_dedup needs Python 3.11 or later; set PYTHON=...")'
	@echo "1/3 virtual environment $(VENV)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "2/3 $$(grep -c == requirements-dev.lock) packages from the lock file: a minute or so the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@echo "3/3 stream_dedup itself"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## Stream sample articles through the real service on a real Kafka (STAY=1 keeps it up)
	@$(BIN)/python -m deploy.demo $(if $(STAY),--stay)

test: $(READY) ## All tests, on a real Kafka (WORKERS=4 at a time, each with a broker of its own)
	@$(COMPILE) & $(BIN)/python -m deploy.broker --fetch; wait $$!
	@$(BIN)/python -m pytest $(PARALLEL)

unit: $(READY) ## The unit tests that are quick: a minute, no broker
	@$(COMPILE)
	@$(BIN)/python -m pytest tests/unit -m "not slow" $(PARALLEL)

image: ## The image of the service, by ENGINE=docker (or podman, buildah); BASE=, EXTRAS=, TAG=
	@$(ENGINE) build $(if $(filter docker,$(ENGINE)),,--format docker) --file deploy/docker/Dockerfile \
		--tag stream-dedup:$(or $(TAG),local) --build-arg TARGETARCH=$(ARCH) \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) \
		$(if $(BASE),--build-arg BASE=$(BASE)) $(if $(EXTRAS),--build-arg EXTRAS=$(EXTRAS)) .

image-test: $(READY) ## Build the image on a base out of packages, and run it on a real Kafka: minutes, as root
	@$(BIN)/python -m deploy.broker --fetch
	@$(BIN)/python -m pytest -m image tests/image

tour: $(READY) ## Break a running service, roll it out and restore it under a real Prometheus, and see the right alerts
	@$(BIN)/python -m deploy.broker --fetch
	@PROMETHEUS_REQUIRED=1 $(BIN)/python -m pytest --verbose tests/observing/test_tour.py tests/observing/test_rollout.py

lint: $(READY) ## Formatter, linter and type check
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

broker: $(READY) ## A Kafka on this machine, until Ctrl-C
	@$(BIN)/python -m deploy.broker

bench: $(READY) ## The whole service beside its references: rates, ratios, latency (ARTICLES=, LINKS=, TRUTH=, ROUNDS=, OUT=)
	@$(if $(TRUTH),$(if $(and $(ARTICLES),$(LINKS)),,$(error TRUTH= wants ARTICLES= and LINKS= too)))
	@$(BIN)/python -m tests.benchmarks.throughput --json $(or $(OUT),out/bench.json) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(OF_ARTICLES) $(if $(LINKS),--links $(LINKS))
	@$(if $(TRUTH),$(BIN)/python -m tests.benchmarks.score $(LINKS) --truth $(TRUTH) --articles $(ARTICLES))

bench-hotspots: $(READY) ## Where the CPU of a decision goes, by function and compiled loop (ARTICLES=)
	@$(BIN)/python -m tests.benchmarks.hotspots $(OF_ARTICLES)

bench-scale: $(READY) ## The index as it grows to N=1M entries: rate, memory, disk, start; a table, JSON and a plot (OUT=)
	@$(BIN)/python -m tests.benchmarks.scale $(if $(N),--entries $(N)) --out $(or $(OUT),out)

bench-window: $(READY) ## Disk, memory and index on an endless stream in compressed time (WINDOWS=, OUT=)
	@$(BIN)/python -m tests.benchmarks.window $(if $(WINDOWS),--windows $(WINDOWS)) $(if $(OUT),--out $(OUT))

bench-ask: $(READY) ## How fast the API answers at full load, and what it costs the stream (ARTICLES=, OUT=)
	@$(BIN)/python -m tests.benchmarks.asking --json $(or $(OUT),out/ask.json) $(OF_ARTICLES)

bench-footprint: $(READY) ## Memory and CPU of the service at rest, under a steady load and at full load (ARTICLES=, OUT=)
	@$(COMPILE)
	@$(BIN)/python -m tests.benchmarks.footprint --json $(or $(OUT),out/footprint.json) $(OF_ARTICLES)

bench-replay: $(READY) ## How fast a lost state is restored from the changelog
	@$(BIN)/python -m tests.benchmarks.replay

corpora: $(READY) ## Fetch real texts to measure on into OUT=corpora
	@$(BIN)/python -m tests.benchmarks.corpora --out $(or $(OUT),corpora)

bench-robustness: $(READY) ## Recall by edit and strength on CORPORA=corpora (HALF=report)
	@$(BIN)/python -m tests.benchmarks.robustness $(or $(CORPORA),corpora) $(if $(HALF),--half $(HALF))

evaluate-report: $(READY) ## Compare algorithms (ALGORITHMS=) on ARTICLES= (PAIRS=), put the report NAME= into the README (OUT=)
	@$(if $(ARTICLES),,$(error ARTICLES= is missing: a file of articles))
	@$(BIN)/stream-dedup evaluate run $(ARTICLES) $(addprefix --pairs ,$(PAIRS)) --lenient --findings \
		$(foreach one,$(ALGORITHMS),--algorithms '$(one)') \
		--out $(REPORT_OUT) --markdown $(REPORT_OUT)/markdown
	@$(BIN)/python -m tests.evaluate_page --report $(REPORT_OUT)/markdown --name $(or $(NAME),people)

evaluate-page: $(READY) ## Renew the lists in stream_dedup/evaluate/README.md
	@$(BIN)/python -m tests.evaluate_page

bench-plan: $(READY) ## The planner's figures beside those of an index of ARTICLES=1M entries (FILE=articles to copy)
	@$(BIN)/python -m tests.benchmarks.plan $(OF_ARTICLES) $(if $(FILE),--file $(FILE))

soak: $(READY) ## Constant load and random faults for MINUTES=5, with plots in OUT=
	@$(COMPILE)
	@$(BIN)/python -m tests.faults.soak --minutes $(or $(MINUTES),5) $(if $(OUT),--out $(OUT))

lock: $(READY) ## Renew the lock files; what is run has the versions that are tested
	@$(BIN)/uv pip compile $(LOCK) --upgrade pyproject.toml --all-extras --group dev -o requirements-dev.lock
	@$(BIN)/uv pip compile $(LOCK) -c requirements-dev.lock pyproject.toml --extra otel --extra parquet --extra registry -o requirements.lock
	@printf 'hatchling\nsetuptools\n' | $(BIN)/uv pip compile $(LOCK) -c requirements-dev.lock - -o deploy/docker/build.lock

licences: $(READY) ## Renew the list of the run-time packages' licences, deploy/LICENCES.md
	@$(BIN)/python -m deploy.supply.licences

audit: $(READY) ## Known vulnerabilities of the run-time packages
	@$(BIN)/python -m deploy.supply.audit

sbom: $(READY) ## The run-time packages as a CycloneDX list, with licences and what needs what (OUT=out/sbom.json)
	@$(BIN)/python -m deploy.supply.sbom $(or $(OUT),out/sbom.json)

version: ## The version, from the one place where it is written down
	@echo $(VERSION)

notes: ## What CHANGELOG.md says of the version
	@awk -v heading='## [$(VERSION)]' '/^## / {inside = index($$0, heading) == 1; next} inside {print; found = 1} END {exit !found}' CHANGELOG.md

chart: ## The Helm chart as an archive, in dist (HELM=helm)
	@$(or $(HELM),helm) package deploy/helm/stream-dedup --destination dist

up: ## The service with Kafka, Prometheus and Grafana by Docker Compose, on this machine
	@VERSION=$(VERSION) REVISION=$(REVISION) docker compose --file deploy/compose.yaml up --build --wait
	@echo "page http://127.0.0.1:9109 (token for-this-machine-only, unless API_TOKEN is set)  Grafana http://127.0.0.1:3000  Prometheus http://127.0.0.1:9090  Kafka 127.0.0.1:19092"

down: ## End them; their volumes stay (VOLUMES=1 removes them)
	@docker compose --file deploy/compose.yaml --profile standby down $(if $(VOLUMES),--volumes)

dist: $(READY) ## Wheel and source archive, in dist
	@$(BIN)/python -m hatchling build

settings-page: $(READY) ## Renew the tables of settings in config/README.md and README.md
	@$(BIN)/python -m tests.settings_page

metrics-page: $(READY) ## Renew the tables of metrics in deploy/metrics.md
	@$(BIN)/python -m tests.metrics_page

events-page: $(READY) ## Renew the page of the log's events, deploy/events.md
	@$(BIN)/python -m tests.events_page

dashboards: $(READY) ## Renew the Grafana dashboards in deploy/grafana
	@$(BIN)/python -m deploy.dashboards

dashboard-pictures: $(READY) ## Draw the dashboards with data of a real Prometheus into deploy/pictures
	@$(BIN)/python -m deploy.broker --fetch
	@$(BIN)/python -m deploy.dashboards.picture

clean: ## Remove the virtual environment, caches and what was built
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# All targets by name: none is a file, though some are named like a folder.
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
