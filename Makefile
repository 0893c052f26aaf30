# Targets document themselves: `make help` prints the text behind ##.
PYTHON ?= .venv/bin/python
.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this help
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 14

.venv:
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --editable ".[test]"

.PHONY: test
test: .venv ## Run the tests
	$(PYTHON) -m pytest

.PHONY: oracles
oracles: .venv ## Install other libraries and compare with them (minutes)
	$(PYTHON) -m pip install --quiet --editable ".[test,oracles]"
	$(PYTHON) -m pytest -m oracle

.PHONY: fuzz
fuzz: .venv ## Try 100,000 mutated tables, options, model files and networks (an hour)
	$(PYTHON) -m fuzz 20000

.PHONY: lint
lint: .venv ## Check style and formatting
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

.PHONY: types
types: .venv ## Check types
	$(PYTHON) -m mypy

.PHONY: bench
bench: .venv ## Time against peers and fill benchmarks/RESULTS.md (minutes)
	$(PYTHON) -m pip install --quiet --editable ".[bench]"
	$(PYTHON) -m benchmarks.naive_bayes
	$(PYTHON) -m benchmarks.gaussian_discriminant
	$(PYTHON) -m benchmarks.dependence
	$(PYTHON) -m benchmarks.networks
	$(PYTHON) -m benchmarks.network_questions
	$(PYTHON) -m benchmarks.network_learning
	$(PYTHON) -m benchmarks.hidden
	$(PYTHON) -m benchmarks.pool
	$(PYTHON) -m benchmarks.sources

.PHONY: tables
tables: .venv ## Measure the figures of docs/ again (minutes; real tables need the data folder)
	$(PYTHON) -m experiments.dependence --sweep
	$(PYTHON) -m experiments.generative_discriminative
	$(PYTHON) -m experiments.pool

.PHONY: scale
scale: .venv ## Measure the figures of docs/scale.md again (minutes)
	$(PYTHON) -m experiments.scale

.PHONY: hidden
hidden: .venv ## Measure hidden labels and cells for docs/hidden.md again (10 minutes; needs the data folder)
	$(PYTHON) -m experiments.hidden

.PHONY: pictures
pictures: .venv ## Draw the pictures of the README again
	$(PYTHON) -m experiments.pictures

.PHONY: ci
ci: ## Run what continuous integration runs, in a fresh environment
	.ci/run
