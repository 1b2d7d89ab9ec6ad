# Two commands for a fresh machine: `make demo` and `make test`. Both set up all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
DEMO_STAMP := $(VENV)/.installed
WORKERS ?= 2

.PHONY: demo serve test quick soak check check-platforms audit format benchmark docs papers pictures site clean peers measure

demo: $(DEMO_STAMP)
	$(BIN)/tablesafe demo --output demo-output

# The web app, on this machine only, over the files of the demo or of FOLDER.
FOLDER ?= demo-output
serve: $(DEMO_STAMP)
	mkdir -p $(FOLDER)
	$(BIN)/tablesafe serve $(FOLDER)

test: $(STAMP) java chromium
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# The tests start tablesafe hundreds of times: each start would translate its modules anew where nothing may be kept.
test quick soak: export PYTHONDONTWRITEBYTECODE :=

# Three quarters of a minute on two cores: the first case of each test, but for what tests/slow.txt names; solvers are in it.
quick: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --quick

# Every property on TIMES as many new examples: for an idle machine, after changes that matter.
TIMES ?= 50
soak: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --times $(TIMES)

check: $(STAMP)
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/python .ci/audit
	$(BIN)/python -m benchmarks fresh

# The types as Windows and macOS have them; each keeps what it found, for mypy forgets all of it for another system.
check-platforms: $(STAMP)
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

# Known vulnerabilities in the versions of constraints.txt; it says by name when it could not ask.
audit: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt '.[audit]'
	$(BIN)/python .ci/audit

format: $(STAMP)
	$(BIN)/ruff check --fix src tests benchmarks docs
	$(BIN)/ruff format src tests benchmarks docs

# SUITE: smoke, headline, growth, …; `python -m benchmarks list` names all. An unfinished run goes on where it stopped.
SUITE ?= smoke
benchmark: $(STAMP)
	$(BIN)/python -m benchmarks run $(SUITE)
	$(BIN)/python -m benchmarks page

# Everything that pages show, made anew: hours on an idle machine, each suite for at most MINUTES; run it again to go on.
MINUTES ?= 90
MEASURED ?= start headline microdata growth-microdata growth
measure: $(STAMP) peers
	for suite in $(MEASURED); do $(BIN)/python -m benchmarks run $$suite --minutes $(MINUTES) || exit 1; done
	$(BIN)/python -m benchmarks.arena enter
	$(BIN)/python -m benchmarks.arena league
	$(BIN)/python -m benchmarks.arena prove
	$(BIN)/python -m benchmarks.arena league
	$(BIN)/python -m benchmarks page

# The programs that the benchmarks run beside ours need other versions of the libraries: they live apart.
peers:
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/peers/requirements.txt

docs: $(STAMP)
	$(BIN)/python docs/reference
	$(BIN)/python -m benchmarks page

# The pages of the papers, made by running the code: a minute or two.
papers: $(STAMP)
	$(BIN)/python docs/reproduce

# The pictures of README and documentation, taken by the browser tests.
pictures: $(STAMP) chromium
	TABLESAFE_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/web/test_browser_pictures.py tests/web/test_browser_readme_pictures.py

# The documentation as a site: open build/site/index.html.
site: $(STAMP) docs
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html docs build/site

clean:
	rm -rf $(VENV) .venv-peers demo-output

# The demo needs the package with its plots, spreadsheets and web app, the tests everything else too.
$(DEMO_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || (apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[excel,plots,web]'
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

# The browser tests need Chromium; the same holds for them.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || apt-get install -y --no-install-recommends chromium >/dev/null 2>&1 \
		|| echo "no Chromium: the browser tests will be skipped"
