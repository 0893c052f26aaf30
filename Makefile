# Targets document themselves: `make help` prints the text behind ##.
PYTHON ?= .venv/bin/python
TESTS ?= tests
.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this help
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 14

# Written last: an environment of which the installation failed, or is older than its requirements, is installed again.
ENVIRONMENT := .venv/complete
$(ENVIRONMENT): pyproject.toml
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --editable ".[test]"
	@touch $@

.PHONY: test
test: $(ENVIRONMENT) ## Run the quick tests: those that reach all lines and branches in the fewest seconds
	$(PYTHON) -m pytest

.PHONY: full
full: $(ENVIRONMENT) ## Run the tests that the quick run leaves out, up to 8 cases of each, which install Spark
	$(PYTHON) -c "import pyspark" 2>/dev/null || $(PYTHON) -m pip install --quiet --editable ".[test,spark]"
	$(PYTHON) -m pytest -m "full and not prose" --durations=40

.PHONY: weekly
weekly: $(ENVIRONMENT) ## Run the further cases and the slowest tests (tests/weekly.txt), which install Spark (half an hour)
	$(PYTHON) -c "import pyspark" 2>/dev/null || $(PYTHON) -m pip install --quiet --editable ".[test,spark]"
	$(PYTHON) -m pytest -m "weekly and not prose" --durations=40

.PHONY: laws
laws: $(ENVIRONMENT) ## Run each law on more examples (minutes)
	$(PYTHON) -m pytest -m "hypothesis and not prose" --hypothesis-profile=thorough

.PHONY: quick
quick: $(ENVIRONMENT) ## Choose the quick tests again, by what each test reaches (an hour); CHECK=--check only checks the list
	$(PYTHON) -c "import coverage" 2>/dev/null || $(PYTHON) -m pip install --quiet coverage
	$(PYTHON) -m tests.quick $(CHECK)

.PHONY: mutants
mutants: $(ENVIRONMENT) ## Change a sign, an index or an axis of the source, 22 times, and see whether tests notice (minutes)
	$(PYTHON) -m tests.mutants

.PHONY: docs
docs: $(ENVIRONMENT) ## Build the documentation site into build/site; warnings and dead links are errors
	$(PYTHON) -c "import sphinx_copybutton, sphinx_gallery" 2>/dev/null || $(PYTHON) -m pip install --quiet --editable ".[docs]"
	$(PYTHON) -m sphinx -E -j 2 -W --keep-going --quiet docs build/site
	$(PYTHON) docs/check_site.py build/site

.PHONY: oracles
oracles: $(ENVIRONMENT) ## Install other libraries and compare with them (minutes)
	$(PYTHON) -m pip install --quiet --editable ".[test,oracles]"
	$(PYTHON) -m pytest -m oracle

.PHONY: fuzz
fuzz: $(ENVIRONMENT) ## Try 100,000 command lines, models, model files and networks, each with one thing changed (an hour)
	$(PYTHON) -m fuzz 100000

.PHONY: lint
lint: $(ENVIRONMENT) ## Check style, formatting, and the words of code and pages
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m pytest -q -m prose tests/test_*.py

.PHONY: types
types: $(ENVIRONMENT) ## Check types
	$(PYTHON) -m mypy

.PHONY: coverage
coverage: $(ENVIRONMENT) ## Run the tests and measure which lines they reach (kernels are compiled and do not count)
	$(PYTHON) -m pip install --quiet pytest-cov
	$(PYTHON) -m pytest $(TESTS) --cov=posteriori --cov-branch --cov-report=term-missing:skip-covered

.PHONY: pythons
pythons: $(ENVIRONMENT) ## Run quick tests on each Python from 3.11 to 3.14 that the machine has
	$(PYTHON) .ci/environments.py pythons

.PHONY: lowest
lowest: $(ENVIRONMENT) ## Run quick tests with the lowest promised version of each dependency
	$(PYTHON) .ci/environments.py lowest

.PHONY: wheel
wheel: $(ENVIRONMENT) ## Build sdist and wheel, and test the wheel in a fresh environment without Numba
	$(PYTHON) -c "import build" 2>/dev/null || $(PYTHON) -m pip install --quiet build
	rm -rf build/wheel
	$(PYTHON) -m build --outdir build/wheel
	$(PYTHON) .ci/installed.py build/wheel

define SCORE
import sys, posteriori as po
print(po.scoring.load_scorer(sys.argv[1])({"bill_length_mm": 50.0, "island": "Biscoe"}))
extra = [name for name in ("numba", "scipy", "sklearn", "polars") if name in sys.modules]
sys.exit(f"{extra} were imported" if extra else 0)
endef
export SCORE

.PHONY: minimal
minimal: $(ENVIRONMENT) ## Score rows in a fresh environment with NumPy and safetensors only
	rm -rf build/minimal
	$(PYTHON) -m venv build/minimal
	build/minimal/bin/python -m pip install --quiet "numpy>=2.1" "safetensors>=0.5"
	build/minimal/bin/python -m pip install --quiet --no-deps .
	$(PYTHON) -c "import posteriori.cli as c; raise SystemExit(c.main())" fit src/posteriori/datasets/penguins.csv --model nb --target species --output build/minimal/penguins.posteriori
	$(PYTHON) -c "import posteriori.cli as c; raise SystemExit(c.main())" fit src/posteriori/datasets/penguins.csv --model kernel --target body_mass_g --output build/minimal/mass.posteriori
	build/minimal/bin/python -c "$$SCORE" build/minimal/penguins.posteriori
	build/minimal/bin/python -c "$$SCORE" build/minimal/mass.posteriori

.PHONY: bench
bench: $(ENVIRONMENT) ## Time against peers and fill benchmarks/RESULTS.md (minutes)
	$(PYTHON) -m pip install --quiet --editable ".[bench]"
	$(PYTHON) -m benchmarks.naive_bayes
	$(PYTHON) -m benchmarks.gaussian_discriminant
	$(PYTHON) -m benchmarks.dependence
	$(PYTHON) -m benchmarks.networks
	$(PYTHON) -m benchmarks.network_questions
	$(PYTHON) -m benchmarks.network_learning
	$(PYTHON) -m benchmarks.hidden
	$(PYTHON) -m benchmarks.pool
	$(PYTHON) -m benchmarks.wide
	$(PYTHON) -m benchmarks.forest
	$(PYTHON) -m benchmarks.text
	$(PYTHON) -m benchmarks.sources
	$(PYTHON) -m benchmarks.large --full
	$(PYTHON) -m benchmarks.installation
	$(PYTHON) -m benchmarks.one_row
	$(PYTHON) -m benchmarks.javascript
	$(PYTHON) -m benchmarks.engines
	$(PYTHON) -m benchmarks.estimates

.PHONY: tables
tables: $(ENVIRONMENT) ## Measure the figures of docs/ again (minutes; real tables need the data folder)
	$(PYTHON) -m experiments.dependence --sweep
	$(PYTHON) -m experiments.generative_discriminative
	$(PYTHON) -m experiments.pool

.PHONY: text
text: $(ENVIRONMENT) ## Measure models of counts of words for docs/text.md again (10 minutes; downloads vaderSentiment 0.5)
	$(PYTHON) -m pip download --quiet --no-deps --no-binary :all: --dest build/texts vaderSentiment==0.5
	$(PYTHON) -m experiments.text build/texts/vaderSentiment-0.5.zip

.PHONY: scale
scale: $(ENVIRONMENT) ## Measure the figures of docs/scale.md again (minutes)
	$(PYTHON) -m experiments.scale

.PHONY: hidden
hidden: $(ENVIRONMENT) ## Measure hidden labels and cells for docs/hidden.md again (10 minutes; needs the data folder)
	$(PYTHON) -m experiments.hidden

.PHONY: pictures
pictures: $(ENVIRONMENT) ## Draw the pictures of the README again
	$(PYTHON) -m experiments.pictures

.PHONY: ci
ci: ## Run what continuous integration runs, in a fresh environment
	.ci/run
