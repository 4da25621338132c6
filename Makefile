# SPDX-License-Identifier: Apache-2.0
# Needs Python 3.10 or newer and make. Everything else goes into .venv, once; `make PYTHON=...` picks another Python.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
TORCH := -c constraints/torch-cpu.txt
TOOLS := -c constraints/tools.txt

# 3.11 first: the Python the demo's figures in README.md were measured with.
CANDIDATES := python3.11 python3 python3.12 python3.13 python3.10
USABLE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))

.DEFAULT_GOAL := help
# Each makes what it needs (venvs for the interpreters it finds) and prints ratios of two things measured in one run.
BENCHES := bench/span.py bench/call.py bench/idle_process.py bench/start.py bench/remote.py bench/import_rewritten.py bench/apply.py bench/loop_by_monitoring.py bench/children.py bench/report.py

# Each in a venv of its own, made once and kept in ~/.cache/lens-auto-tests.
RAY_VERSIONS := 2.40.0,2.48.0,newest
VLLM_VERSIONS := 0.31.0,0.32.0

.PHONY: help demo demo-ray demo-vllm test test-frameworks matrix torture lint types docs bench clean

help:
	@echo 'make demo             a small GRPO training, traced: the step table, a run folder and a report (a few minutes the first time)'
	@echo 'make demo-ray         the same on Ray actors, then with generation running ahead'
	@echo 'make demo-vllm        the same with rollouts by a real vLLM engine on the CPU (4 GB and some minutes the first time)'
	@echo 'make test             all tests'
	@echo 'make test-frameworks  the tests on Ray and frameworks, all of them, on each Ray version that is supported'
	@echo 'make matrix           every way to start a process, under every launcher, on every Python found: a table'
	@echo 'make torture          whole libraries with a span at every place, compared with themselves, on every Python found'
	@echo 'make lint             ruff and the import contracts'
	@echo 'make types            pyright'
	@echo 'make docs             the generated pages and rules/schema.json, and a check of every link'
	@echo 'make bench            what recording costs, against the OpenTelemetry SDK, on every Python found'
	@echo 'make clean            removes .venv, caches and build output; keeps lens-runs/'

demo: $(VENV)/.has-demo
	@echo '$$ lens-instrument python examples/run_grpo.py'
	@PATH="$(CURDIR)/$(BIN):$$PATH" lens-instrument python examples/run_grpo.py
	@$(BIN)/lens-report html

# Each training in turn, so that the second has the machine to itself.
demo-ray: $(VENV)/.has-demo-ray
	@echo '$$ lens-instrument python examples/run_grpo.py --ray --steps 40'
	@PATH="$(CURDIR)/$(BIN):$$PATH" lens-instrument python examples/run_grpo.py --ray --steps 40
	@echo '$$ lens-instrument python examples/run_grpo.py --ray --async --steps 40'
	@PATH="$(CURDIR)/$(BIN):$$PATH" lens-instrument python examples/run_grpo.py --ray --async --steps 40

# vLLM has a torch of its own, and so a venv of its own: the one that its tests use.
demo-vllm: $(VENV)/.has-dev
	@python=$$($(BIN)/python -m tests.helpers.vllm_venv) && \
	echo '$$ lens-instrument --span-groups per_step,job,per_prompt python examples/run_grpo.py --engine vllm --heads 2 --steps 20' && \
	PATH="$(CURDIR)/$(BIN):$$PATH" VLLM_LOGGING_LEVEL=WARNING VLLM_CPU_KVCACHE_SPACE=1 OMP_NUM_THREADS=1 \
	lens-instrument --span-groups per_step,job,per_prompt $$python examples/run_grpo.py --engine vllm --heads 2 --steps 20

test: $(VENV)/.has-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-frameworks: $(VENV)/.has-dev
	LENS_TEST_RAY=$(RAY_VERSIONS) LENS_TEST_VLLM=$(VLLM_VERSIONS) $(BIN)/python -m pytest tests/ray tests/frameworks tests/process/codemod $(PYTEST_ARGS)

matrix: $(VENV)/.has-dev
	$(BIN)/python -m tests.frameworks.process_matrix

torture: $(VENV)/.has-dev
	$(BIN)/python tests/fidelity/torture.py

lint: $(VENV)/.has-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.has-dev
	$(BIN)/pyright

# Writes what is out of date; with CI set, changes nothing and fails instead.
docs: $(VENV)/.has-dev
	$(BIN)/python docs/build.py $(if $(CI),--check)

bench: $(VENV)/.has-dev
	@set -e; for bench in $(BENCHES); do echo "== $$bench"; $(BIN)/python $$bench; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@for python in $(or $(PYTHON),$(CANDIDATES)); do \
	  if "$$python" -c '$(USABLE)' 2>/dev/null; then \
	    echo "creating $(VENV) with $$python"; exec "$$python" -m venv $(VENV); \
	  fi; \
	done; \
	echo 'no usable Python among: $(or $(PYTHON),$(CANDIDATES)) (3.10 or newer, with its venv module)' >&2; exit 1

$(VENV)/.has-demo: pyproject.toml constraints/torch-cpu.txt $(VENV)/pyvenv.cfg
	@echo 'installing lens-auto and torch into $(VENV)'
	@$(PIP) install $(TORCH) -e '.[demo,report]'
	@touch $@

$(VENV)/.has-demo-ray: pyproject.toml constraints/torch-cpu.txt $(VENV)/pyvenv.cfg
	@echo 'installing lens-auto, torch and Ray into $(VENV)'
	@$(PIP) install $(TORCH) -e '.[demo,ray,report]'
	@touch $(VENV)/.has-demo $@

$(VENV)/.has-dev: pyproject.toml constraints/torch-cpu.txt constraints/tools.txt $(VENV)/pyvenv.cfg
	@echo 'installing lens-auto, torch, Ray and the test tools into $(VENV)'
	@$(PIP) install $(TORCH) $(TOOLS) -e '.[dev]'
	@touch $(VENV)/.has-demo $(VENV)/.has-demo-ray $@
