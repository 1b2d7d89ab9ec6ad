# Two commands for a fresh machine: `make demo` and `make test`. Both set up all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
DEMO_STAMP := $(VENV)/.installed
WORKERS ?= 2

.PHONY: demo test check format benchmark docs clean

demo: $(DEMO_STAMP)
	$(BIN)/tablesafe demo --output demo-output

test: $(STAMP) java
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

check: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix src tests benchmarks
	$(BIN)/ruff format src tests benchmarks

benchmark: $(STAMP)
	$(BIN)/python benchmarks/tabulate.py
	$(BIN)/python benchmarks/audit.py

docs: $(STAMP)
	$(BIN)/python -m tablesafe.cli.reference docs

clean:
	rm -rf $(VENV) demo-output

# The demo needs the package with its plots and spreadsheets, the tests everything else too.
$(DEMO_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || (apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[excel,plots]'
	touch $@

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || (apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@ $(DEMO_STAMP)

# Spark needs Java; without it, and without leave to install it, the Spark tests are skipped by name.
.PHONY: java
java:
	@command -v java >/dev/null || apt-get install -y --no-install-recommends openjdk-17-jre-headless >/dev/null 2>&1 \
		|| echo "no Java: the Spark tests will be skipped"
