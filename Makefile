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
	cd benchmarks && ../$(PYTHON) naive_bayes.py && ../$(PYTHON) gaussian_discriminant.py && ../$(PYTHON) dependence.py
	cd benchmarks && ../$(PYTHON) networks.py && ../$(PYTHON) network_questions.py
	cd benchmarks && ../$(PYTHON) network_learning.py && ../$(PYTHON) hidden.py && ../$(PYTHON) pool.py
	cd benchmarks && ../$(PYTHON) sources.py

.PHONY: tables
tables: .venv ## Measure the figures of docs/ again (minutes; real tables need the data folder)
	$(PYTHON) docs/make_dependence_tables.py --sweep
	$(PYTHON) docs/make_comparison_tables.py
	$(PYTHON) docs/make_pool_tables.py

.PHONY: scale
scale: .venv ## Measure what docs/scale.md works out again (minutes)
	$(PYTHON) docs/make_scale_tables.py

.PHONY: hidden
hidden: .venv ## Measure hidden labels and cells for docs/hidden.md again (10 minutes; needs the data folder)
	$(PYTHON) docs/make_hidden_tables.py

.PHONY: pictures
pictures: .venv ## Draw the pictures of the README again
	$(PYTHON) docs/make_pictures.py

.PHONY: ci
ci: ## Run what continuous integration runs, in a fresh environment
	.ci/run
