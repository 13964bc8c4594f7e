PYTHON ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PLUGINS := $(wildcard plugins/*)
EXTENSION := extensions/rlnb-jupyterlab
PAGES := $(EXTENSION)/src/rlnb_jupyterlab/labextension
OTHER_PYTHONS ?= 3.11 3.13
EDITABLE := $(foreach plugin,$(PLUGINS),--editable $(plugin))
# Needed only where JupyterLab's server runs.
WITH_PAGES := --editable '$(EXTENSION)[test]'
PYTEST := $(BIN)/python -m pytest
# Four tests run at once, since many of them wait, and neighbours stay together, since they share fixtures. Tests with a
# simulator run one file, or class, per core on one thread each: torch's threads spin while they wait for each other, so
# two simulators with many threads slow each other down.
QUICK := $(PYTEST) -n 4 --dist worksteal -m "not isaaclab and not slow and not gpu"
ISAACLAB = OMP_NUM_THREADS=1 $(PYTEST) -n 2 --dist loadscope -m "isaaclab and not slow and not gpu" $(call NAMING,isaaclab)
SLOW = OMP_NUM_THREADS=1 $(PYTEST) -n 2 --dist loadscope -m "slow and not gpu" $(call NAMING,slow|in_browser)
# The files of tests that name a marker. Each process collects only these, which takes a third of the time. conftest.py
# refuses a marked test whose file lacks the word.
NAMING = $(sort $(shell grep -rlwE '$(1)' --include='test_*.py' tests plugins))
# Tests of code that runs in a kernel, which may have another Python than the worker, and none of its packages. The other
# laws are about the text of the source, which has one version.
KERNEL_TESTS := $(addprefix tests/laws/test_,pythons.py imports.py public_names.py hook_docs.py) \
	$(addprefix tests/,machine diagnosis records launch node metrics storage configs protocol tasks training jobs run studies simulation interactive cameras cli doctor) \
	$(wildcard tests/test_*.py)
OUT ?= outputs

# Isaac Lab and torch are 6,000 modules. In images that forbid writing bytecode, each start compiles them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test test-all test-gpu bench-gpu gpu-pieces test-kernels test-trackers test-extension test-pages chaos extension extension-wheel wheels release docs gallery lint lab bench slurm-up slurm-down sge-up sge-down clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.installed ## create .venv with Isaac Lab and all other dependencies

$(UV): constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$$(sed -n 's/^uv==//p' constraints.txt)
	touch $@

$(VENV)/.installed: $(UV) pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml) $(EXTENSION)/pyproject.toml
	$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt \
		$(EDITABLE) $(WITH_PAGES) --editable '.[isaaclab,libraries,dask,ssh,report,lab,sweep,view,docs,dev]'
	touch $@

# More than a gigabyte, for the slow tests only: OvPhysX, skrl with JAX, and robots from URDF files.
$(VENV)/.installed-slow: $(VENV)/.installed
	$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt \
		$(EDITABLE) --editable '.[jax,physx]' --editable 'plugins/rlnb-tasks[robots]'
	touch $@

demo: install ## define, preview, train, evaluate and report a task on this machine
	$(BIN)/rlnb demo --out $(OUT)

lab: install extension ## open JupyterLab in notebooks/, with the panel of runs
	$(BIN)/jupyter lab --notebook-dir notebooks

# The wheel contains the built pages, so only development of the pages needs node.
extension: $(PAGES)/package.json ## build the pages of the JupyterLab extension (needs node)

$(EXTENSION)/node_modules/.installed: $(VENV)/.installed $(EXTENSION)/package.json $(EXTENSION)/yarn.lock
	cd $(EXTENSION) && $(CURDIR)/$(BIN)/jlpm install --immutable
	touch $@

$(PAGES)/package.json: $(EXTENSION)/node_modules/.installed rlnb/curves/chart.js $(shell find $(EXTENSION)/ts $(EXTENSION)/style $(EXTENSION)/schema -type f 2>/dev/null)
	cd $(EXTENSION) && PATH=$(CURDIR)/$(BIN):$$PATH jlpm build
	mkdir -p $(VENV)/share/jupyter/labextensions
	rm -rf $(VENV)/share/jupyter/labextensions/rlnb-jupyterlab
	ln -s $(CURDIR)/$(PAGES) $(VENV)/share/jupyter/labextensions/rlnb-jupyterlab
	touch $@

test-extension: install ## test the server part of the JupyterLab extension
	cd $(EXTENSION) && $(CURDIR)/$(BIN)/python -m pytest -n 3 -m "not slow"

# Installing the build dependencies of the pages takes minutes.
test-pages: install ## test the pages of the extension (if node is installed), and its slow server tests
	if command -v node > /dev/null; then $(MAKE) extension && cd $(EXTENSION) && $(CURDIR)/$(BIN)/jlpm test; \
	else echo "node is not installed: the pages are not tested"; fi
	cd $(EXTENSION) && $(CURDIR)/$(BIN)/python -m pytest -m slow

wheels: install ## rlnb and its plugins as wheels, in dist/; docs/installing.md says how to install them
	for package in . plugins/*; do $(UV) build --quiet --wheel --python $(BIN)/python --out-dir dist $$package || exit 1; done
	$(BIN)/python tests/rig/release.py constraints dist

extension-wheel: extension ## build the wheel of the extension, with its pages, in dist/
	$(UV) build --quiet --wheel --python $(BIN)/python --out-dir dist $(EXTENSION)
	$(BIN)/python tests/rig/release.py constraints dist

release: install extension ## every wheel into dist/, then all of them with pip into a new environment, and the demo there
	rm -rf dist
	$(MAKE) wheels extension-wheel
	$(BIN)/python tests/rig/release.py check dist $(OUT)/release

docs: install ## the documentation site, docs/_build/html/index.html, without network
	$(BIN)/python -m sphinx --quiet --fail-on-warning --builder html docs docs/_build/html

gallery: install ## execute the notebooks for the site (about ten minutes)
	$(BIN)/python docs/execute.py $(OUT)/gallery

slurm-up: install ## start a real Slurm with four nodes on this machine, to try cluster jobs; as root it installs Slurm first
	$(BIN)/python tests/rig/slurm.py up

slurm-down: ## stop that Slurm and all its jobs
	$(BIN)/python tests/rig/slurm.py down

sge-up: install ## start a real Grid Engine with four slots on this machine; as root it installs Grid Engine first
	$(BIN)/python tests/rig/sge.py up

sge-down: ## stop that Grid Engine and all its jobs
	$(BIN)/python tests/rig/sge.py down

lint: install
	$(BIN)/ruff check .
	$(BIN)/mypy

# For parts that do not depend on each other, and that leave a core idle at times.
PARALLEL = $(MAKE) --jobs=2 --output-sync=target

test: install ## run everything that must pass before a change lands (< 20 minutes on 2 cores)
	$(PARALLEL) lint test-kernels OTHER_PYTHONS=$(firstword $(OTHER_PYTHONS))
	$(MAKE) test-extension
	$(QUICK)
	$(ISAACLAB)

test-all: install $(VENV)/.installed-slow ## run make test plus the slow tests (< 90 minutes)
	$(PARALLEL) lint test-kernels test-trackers
	$(MAKE) test-extension test-pages
	$(QUICK)
	$(ISAACLAB)
	$(SLOW)

# On a GPU, which is often borrowed for minutes: parts that need nothing of each other, the most telling first, each with
# a time. Nothing is installed or downloaded. PYTHON is an interpreter with rlnb, its plugins and pytest. DEVICE=cpu
# rehearses, with smaller sizes.
GPU_PYTHON := $(if $(filter command line environment,$(origin PYTHON)),$(PYTHON),$(BIN)/python)
DEVICE ?= cuda:0
MINUTES ?= 8
empty :=
SOURCES := $(subst $(empty) $(empty),:,$(CURDIR) $(CURDIR)/benchmarks $(addsuffix /src,$(addprefix $(CURDIR)/,$(PLUGINS))))
ON_GPU = PYTHONPATH="$(SOURCES)$${PYTHONPATH:+:$$PYTHONPATH}" $(GPU_PYTHON)
test-gpu: ## test on one NVIDIA GPU, into benchmarks/RESULTS.md: PART=1 (to 4), MINUTES=8 (for a part), DEVICE=cpu rehearses
	@status=0; for part in $(or $(PART),1 2 3 4); do \
		RLNB_TEST_DEVICE=$(DEVICE) RLNB_TEST_PART=$$part RLNB_TEST_MINUTES=$(MINUTES) \
			$(ON_GPU) -m pytest -m gpu --durations=10 -rA tests/gpu || status=1; \
	done; exit $$status

bench-gpu: ## measure on one NVIDIA GPU, into benchmarks/RESULTS.md: PART=1 (to 6), MINUTES=8 (for a part), DEVICE=cpu rehearses
	@status=0; for part in $(or $(PART),1 2 3 4 5 6); do \
		$(ON_GPU) -m gpu --part $$part --minutes $(MINUTES) --device $(DEVICE) || status=1; \
	done; exit $$status

gpu-pieces: install ## what a GPU machine without internet needs, into dist/gpu, in archives of PIECE_MIB=60; ARCH=90, WITHOUT="torch nvidia-*"
	PYTHONPATH=benchmarks $(BIN)/python -m gpu.pieces dist/gpu --piece-mib $(or $(PIECE_MIB),60) \
		$(addprefix --arch ,$(ARCH)) $(if $(WITHOUT),--without $(foreach name,$(WITHOUT),'$(name)'))

# The kernel half of rlnb also runs on Pythons without Isaac Lab. PYENV_VERSION lets pyenv find a Python other than
# that of .python-version.
.venv-3.%/.installed: $(UV) pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml)
	PYENV_VERSION=3.$* $(UV) venv --quiet --clear --no-python-downloads --python 3.$* $(@D)
	$(UV) pip install --quiet --python $(@D)/bin/python --constraint constraints.txt $(EDITABLE) --editable '.[report,dev]'
	touch $@

test-kernels: $(UV) ## test the kernel half on the other Pythons that are installed
	@for version in $(OTHER_PYTHONS); do \
		export PYENV_VERSION=$$version; \
		$(UV) python find --no-python-downloads $$version >/dev/null 2>&1 || { echo "Python $$version is not installed: not tested"; continue; }; \
		echo "Python $$version"; \
		$(MAKE) --no-print-directory .venv-$$version/.installed && \
		.venv-$$version/bin/python -m pytest -q $(KERNEL_TESTS) \
			-n 3 -m "not isaaclab and not slow and not gpu and not one_python" || exit 1; \
	done

# MLflow and Trackio refuse one pin each, so they have an environment of their own, without Isaac Lab. The library echo
# trains there.
TRACKERS := .venv-trackers
test-trackers: $(UV) ## test the plugins for MLflow and Trackio, in an environment of their own
	$(UV) venv --quiet --clear --python $(BIN)/python $(TRACKERS)
	grep -vE '^(importlib-metadata|pillow)==' constraints.txt > $(TRACKERS)/constraints.txt
	$(UV) pip install --quiet --python $(TRACKERS)/bin/python --constraint $(TRACKERS)/constraints.txt \
		--editable plugins/rlnb-echo --editable 'plugins/rlnb-mlflow[worker]' --editable 'plugins/rlnb-trackio[worker]' \
		--editable . pytest pytest-timeout pytest-xdist
	$(TRACKERS)/bin/python -m pytest -q -n 3 plugins/rlnb-mlflow plugins/rlnb-trackio

CHAOS ?= episodes --seeds 1:20
chaos: install ## hit trainings at random moments; CHAOS="episodes --seeds 1:100", "points" or "resumes --tries 200"
	PYTHONPATH=tests/rig $(BIN)/python -m chaos $(CHAOS)

bench: $(VENV)/.installed-slow ## run the benchmarks of benchmarks/RESULTS.md on an otherwise idle machine
	$(BIN)/python benchmarks/against_isaaclab.py
	$(BIN)/python benchmarks/steps_per_s.py
	$(BIN)/python benchmarks/steps_per_s.py --library rl_games --case 0
	$(BIN)/python benchmarks/steps_per_s.py --library skrl --case 0
	$(BIN)/python benchmarks/steps_per_s.py --auto
	$(BIN)/python benchmarks/ranks_learning.py
	$(BIN)/python benchmarks/contract.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/off_policy.py
	$(BIN)/python benchmarks/time_of_a_step.py
	$(BIN)/python benchmarks/kernel_side.py
	$(BIN)/python benchmarks/edit_loop.py
	$(BIN)/python benchmarks/swap.py
	$(BIN)/python benchmarks/agents.py
	$(BIN)/python benchmarks/success.py
	$(BIN)/python benchmarks/success.py --sources
	$(BIN)/python benchmarks/first_image.py
	$(BIN)/python benchmarks/cycles.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/events.py
	$(BIN)/python benchmarks/dashboard.py
	$(BIN)/python benchmarks/lists.py
	$(BIN)/python benchmarks/killed_rank.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/painted.py
	$(BIN)/python benchmarks/demo.py
	$(BIN)/python benchmarks/cold_start.py starts
	$(BIN)/python benchmarks/cold_start.py together
	$(BIN)/python benchmarks/cold_start.py hang
	$(BIN)/python benchmarks/cold_start.py packs
	$(BIN)/python benchmarks/isaacsim_pins.py
	$(BIN)/python benchmarks/physx.py equal
	$(BIN)/python benchmarks/physx.py rate
	$(BIN)/python benchmarks/physx.py engines
	$(BIN)/python benchmarks/physx.py learning

clean:
	rm -rf $(VENV) .venv-* $(OUT) dist docs/_build .pytest_cache .mypy_cache .ruff_cache
