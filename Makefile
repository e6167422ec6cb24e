# `make demo` and `make test` are all a newcomer needs; both create the environment once and reuse it.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# Two test processes, one thread each: more threads than cores make small torch operations many times slower.
ONE_THREAD = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-cluster lint types docs reference reproduce paper paper-plan bench fuzz clean

demo: $(STAMP)
	$(BIN)/towpath demo --out demo

test: lint types docs
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

# Several processes at length: workers that are killed, tables spread over workers, two hosts on a network of their
# own (which needs root and iproute2, and is skipped without them).
test-cluster: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -m cluster

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m sphinx -W -q -b html docs build/docs

# The reference pages docs/settings.md and docs/commands.md, written from the code, and tables from result files.
reference: $(STAMP)
	$(BIN)/python docs/generated.py

# One cell of a published table again, such as CELL=table-1-ml-1m/DT-MCF; DATA is the folder with the public sets.
reproduce: $(STAMP)
	$(BIN)/towpath paper reproduce "$(CELL)" --seed $(or $(SEED),0) --out build/reproduced \
		$(if $(DATA),--data-dir $(DATA))

# What is missing of the paper's tables and figures, and its hours; then what NAME is (all, or table-1 and so on).
# Results that are committed count, whichever code made them. DATA is the folder with the public sets.
PAPER = $(or $(NAME),all) --any-code --out docs/results --jobs $(or $(JOBS),2) $(if $(DATA),--data-dir $(DATA))

paper-plan: $(STAMP)
	$(BIN)/towpath paper plan $(PAPER)

paper: $(STAMP)
	$(BIN)/towpath paper tune $(PAPER)
	$(BIN)/towpath paper run $(PAPER)
	$(BIN)/python docs/narrow.py $$(ls docs/results/*/results.json | sed 's/json$$/md/')
	$(BIN)/python docs/generated.py

# With the peers too, in environments of their own under build/peers. Ends with one table, build/bench/peers.md, of
# three repetitions; one that was stopped goes on. DATA is a folder with the public sets, if they are not to be fetched.
bench: $(STAMP)
	-$(BIN)/python -m benchmarks
	-$(BIN)/python -m benchmarks.peer_environments
	$(BIN)/python -m benchmarks.peers $(if $(DATA),--data-dir $(DATA))

# 100,000 damaged inputs and 100 kills at random moments; the summaries are fuzz/summary.md and fuzz/kills.md.
fuzz: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m fuzz --inputs 100000 --seed 0 --out fuzz/summary.md
	$(ONE_THREAD) $(BIN)/python -m fuzz.kills --kills 100 --seed 0 --out fuzz/kills.md

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache
