# The two commands of the README are `make demo` and `make test`.
# Everything runs in the project's own virtual environment, .venv, with pinned packages.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# What tests need. With `dev,interpreter`, as in .ci/run, torch is installed and the GPU's kernels are interpreted.
TEST_EXTRAS ?= dev

# One process a core: threads of linear algebra in each of them would stand in each other's way.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: clean-cache demo test test-all test-bounds lint bench clean fuzz-inputs fuzz-parameters soak fuzz-files fuzz-tables faults versions audit

demo: .venv/.demo
	$(BIN)/python examples/digits_demo.py demo-output

.PHONY: demo-cluster

# Part files over worker processes of this machine.
demo-cluster: .venv/.test
	$(BIN)/python examples/cluster_demo.py $(or $(WORKERS),2)

test: lint
	$(PYTEST)

test-all: lint .venv/.docs
	$(PYTEST) -m "slow or not slow"

.PHONY: docs docs-serve docs-deploy

# The gallery runs what has changed; the site fails at the first warning. It opens from disk.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

docs: .venv/.docs
	$(BIN)/python -m docsite.gallery
	$(MKDOCS) build --strict
	@echo "open build/site/index.html"

docs-serve: .venv/.docs
	$(BIN)/python -m docsite.gallery
	$(MKDOCS) serve

# Adds this version to the branch gh-pages of this checkout, beside the earlier ones; nothing is pushed.
docs-deploy: docs
	NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(BIN):$$PATH" mike deploy --update-aliases \
		$$($(BIN)/python -c "import twofold; print(twofold.__version__)") latest
	PATH="$(CURDIR)/$(BIN):$$PATH" mike set-default latest

# Compiled loops that raise where they would read or write outside of their arrays.
BOUNDS := NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-bounds

# The GPU back end on a real device, with the torch and triton of the extra `gpu`.
GPU_TESTS := tests/engine/test_gpu_sums.py tests/neighborhoods/test_gpu.py tests/ukr/test_gpu_fit.py \
	tests/contract/test_tensors.py tests/kernel_pca/test_gpu.py tests/engine/test_gpu_local_fit.py tests/engine/test_gpu_grid.py \
	tests/ukr/test_distant_columns.py tests/contract/test_gpu_workers.py

.PHONY: test-gpu

test-gpu: .venv/.test
	$(INSTALL) --editable ".[dev,gpu]"
	$(BIN)/python -c "from twofold.engine.gpu.library import why_no_gpu; assert not why_no_gpu(), why_no_gpu()"
	$(BIN)/python -m pytest -n 0 -m "slow or not slow" $(GPU_TESTS)

test-bounds: .venv/.test
	$(BOUNDS) $(PYTEST)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: coverage mutants

# Compiled loops leave no trace, so that small tests of each run once more as plain Python, where numpy
# warns of numbers that wrap around.
coverage: .venv/.test
	rm -f .coverage .coverage.*
	$(PYTEST) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(PYTEST) --cov --cov-append --cov-report= -W ignore::RuntimeWarning @tests/interpreted.txt
	$(BIN)/python -m dependability.coverage_totals

mutants: .venv/.mutants
	$(BIN)/python -m dependability.mutants

.PHONY: reproduce

# The tables and figures of the five documents, run again; FULL=1 takes hours. Writes docs/reproduction.md.
reproduce: .venv/.test
	$(BIN)/python -m experiments.reproduction $(if $(FULL),--full)

bench: .venv/.bench
	$(BIN)/python -m benchmarks

# Odd inputs for everything public; COUNT=20000 tries more of them.
fuzz-inputs: .venv/.test
	$(BOUNDS) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m dependability.inputs --count $(or $(COUNT),2000)

# Odd values of every parameter of every estimator.
fuzz-parameters: .venv/.test
	$(BOUNDS) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m dependability.parameters

# Odd tables, read and given to commands.
fuzz-tables: .venv/.test
	$(BOUNDS) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m dependability.tables --count $(or $(COUNT),3000)

# Files of models with parts changed and the checksum made right.
fuzz-files: .venv/.test
	$(BOUNDS) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m dependability.model_files --count $(or $(COUNT),6000)

# The lowest and the newest packages under every Python that is there.
versions:
	$(PYTHON) -m dependability.versions $(PYTHONS)

# Known weaknesses of the pinned packages; asks an advisory database.
audit: .venv/bin/python
	$(INSTALL) pip-audit
	$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip

# The same work over and over; MINUTES=60 takes longer.
soak: .venv/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m dependability.soak --minutes $(or $(MINUTES),10)

# Signals, full disks, folders and caches that cannot be written to; Linux and root.
faults: .venv/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m dependability.faults --count $(or $(COUNT),330)

# A compiled function keeps what it calls in other files as it was when it was compiled.
clean-cache:
	find src -name '*.nb[ic]' -delete

clean:
	rm -rf .venv build demo-output .mypy_cache .ruff_cache .pytest_cache .numba-bounds

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing into .venv (a minute or so)"
	$(INSTALL) --editable ".[plot]"
	@touch $@

.venv/.test: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing into .venv (a minute or so)"
	$(INSTALL) --editable ".[$(TEST_EXTRAS)]"
	@touch $@

.venv/.docs: .venv/.test
	$(INSTALL) --editable ".[$(TEST_EXTRAS),docs]"
	@touch $@

.venv/.mutants: .venv/.test
	$(INSTALL) --editable ".[mutants]"
	@touch $@

.venv/.bench: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable ".[peers]"
	@touch $@
