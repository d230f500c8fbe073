# Every target sets up what it needs: .venv for developers, .venv-run to run and build, both pinned.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
RUN    := .venv-run
RUNS   := $(RUN)/.ready
OUT    ?= out
LINT   := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
unexport PYTHONDONTWRITEBYTECODE  # or each of the tests' many processes compiles all modules

.PHONY: help setup dist demo serve docs test lint bench bench-peers check-slow format clean

help:            ## show this list
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+: +##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## make .venv, the environment for developers

$(STAMP): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" tools/setup.sh $(VENV)
	@touch $@

# What users run needs none of the developers' packages.
$(RUNS): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" tools/setup.sh $(RUN) serve
	@touch $@

dist:            ## build the wheel and the sdist in dist/
	@PYTHON="$(PYTHON)" tools/setup.sh $(RUN) --build
	$(RUN)/bin/python -m build

demo: $(RUNS)    ## plan, simulate, a live campaign, learn, audit: out/demo/report.html
	@$(RUN)/bin/crowdtree demo --out $(OUT)/demo

serve: $(RUNS)   ## serve the app on this machine with an example campaign
	@mkdir -p $(OUT)/serve
	@$(RUN)/bin/crowdtree serve --example --database $(OUT)/serve/crowdtree.db

docs: $(STAMP)   ## build the documentation into out/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs $(OUT)/docs
	@echo "Open $(OUT)/docs/index.html"

test: $(STAMP)   ## all checks and tests but the slow ones
	@tools/setup.sh --browser
	@mkdir -p $(OUT); ($(LINT)) >$(OUT)/lint.log 2>&1 & lint=$$!; \
	$(BIN)/python tools/warm_up.py && $(BIN)/pytest -q -n 3 --dist worksteal -m "not slow"; tests=$$?; \
	wait $$lint; lint=$$?; cat $(OUT)/lint.log; exit $$((tests | lint))

lint: $(STAMP)   ## style, types and import direction
	$(LINT)

bench: $(STAMP)  ## speed and memory, side by side with named peers
	$(BIN)/pip install -q -c constraints.txt -e ".[bench]"
	$(BIN)/python -m benchmarks.design_scale --out docs/measured/benchmarks.md

bench-peers: $(STAMP)  ## side by side with other solvers and tools, each in its own environment
	tools/bench_peers.sh $(BIN)/python

check-slow: $(STAMP)  ## slow tests, properties on new examples, mutation testing
	$(BIN)/pytest -q -m "slow or hypothesis" --hypothesis-profile search --timeout 3600
	tools/mutation.sh $(BIN)

format: $(STAMP) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:           ## remove everything that was made
	rm -rf $(VENV) $(RUN) $(OUT) dist mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis
