PYTHON ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PLUGINS := $(wildcard plugins/*)
EXTENSION := extensions/rlnb-jupyterlab
PAGES := $(EXTENSION)/src/rlnb_jupyterlab/labextension
OTHER_PYTHONS ?= 3.11 3.13
EDITABLE := $(foreach plugin,$(PLUGINS),--editable $(plugin))
# Only a kernel with JupyterLab's server has use for it.
WITH_PAGES := --editable '$(EXTENSION)[test]'
PYTEST := $(BIN)/python -m pytest
# Several tests at once, since most of them wait. With a simulator one file, or class, per core, each on one thread:
# torch's threads wait for each other by spinning, and those of two simulators would do so in each other's way.
QUICK := $(PYTEST) -n 3 -m "not isaaclab and not slow and not gpu"
ISAACLAB := OMP_NUM_THREADS=1 $(PYTEST) -n 2 --dist loadscope -m "isaaclab and not slow and not gpu"
SLOW := OMP_NUM_THREADS=1 $(PYTEST) -n 2 --dist loadscope -m "slow and not gpu"
# Tests of what runs in a kernel, which may have another Python than the worker and none of its packages.
KERNEL_TESTS := $(addprefix tests/,laws records launch node metrics storage tasks training run studies simulation cameras cli doctor) \
	$(wildcard tests/test_*.py)
OUT ?= outputs

# Isaac Lab and torch are 6,000 modules: where images forbid to write bytecode, each start compiles them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test test-all test-kernels test-extension test-pages extension extension-wheel wheels release docs gallery lint lab bench slurm-up slurm-down clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.installed ## make .venv with Isaac Lab and everything else

$(UV): constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$$(sed -n 's/^uv==//p' constraints.txt)
	touch $@

$(VENV)/.installed: $(UV) pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml) $(EXTENSION)/pyproject.toml
	$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt \
		$(EDITABLE) $(WITH_PAGES) --editable '.[isaaclab,libraries,dask,report,lab,sweep,view,docs,dev]'
	touch $@

# A gigabyte that few need: the tests of skrl with JAX, and of robots from URDF, are among the slow ones.
$(VENV)/.installed-slow: $(VENV)/.installed
	$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt \
		$(EDITABLE) --editable '.[jax]' --editable 'plugins/rlnb-tasks[robots]'
	touch $@

demo: install ## define, preview, train, evaluate and report a task, on this machine
	$(BIN)/rlnb demo --out $(OUT)

lab: install extension ## open JupyterLab on notebooks/, with the panel of runs
	$(BIN)/jupyter lab --notebook-dir notebooks

# Whoever installs the wheel has the pages prebuilt; only who works on them needs node.
extension: $(PAGES)/package.json ## build the pages of the JupyterLab extension (needs node)

$(EXTENSION)/node_modules/.installed: $(VENV)/.installed $(EXTENSION)/package.json $(EXTENSION)/yarn.lock
	cd $(EXTENSION) && $(CURDIR)/$(BIN)/jlpm install --immutable
	touch $@

$(PAGES)/package.json: $(EXTENSION)/node_modules/.installed $(shell find $(EXTENSION)/ts $(EXTENSION)/style $(EXTENSION)/schema -type f 2>/dev/null)
	cd $(EXTENSION) && PATH=$(CURDIR)/$(BIN):$$PATH jlpm build
	mkdir -p $(VENV)/share/jupyter/labextensions
	rm -rf $(VENV)/share/jupyter/labextensions/rlnb-jupyterlab
	ln -s $(CURDIR)/$(PAGES) $(VENV)/share/jupyter/labextensions/rlnb-jupyterlab
	touch $@

test-extension: install ## the server's part of the JupyterLab extension
	cd $(EXTENSION) && $(CURDIR)/$(BIN)/python -m pytest -m "not slow"

# Node takes minutes to install what it builds with.
test-pages: install ## the pages of the extension, where there is node, and what is slow of its server
	if command -v node > /dev/null; then $(MAKE) extension && cd $(EXTENSION) && $(CURDIR)/$(BIN)/jlpm test; \
	else echo "node is not here: the pages are not tested"; fi
	cd $(EXTENSION) && $(CURDIR)/$(BIN)/python -m pytest -m slow

wheels: install ## rlnb and its plugins as wheels, in dist/; docs/installing.md says how to install them
	for package in . plugins/*; do $(UV) build --quiet --wheel --python $(BIN)/python --out-dir dist $$package || exit 1; done
	$(BIN)/python tests/rig/release.py constraints dist

extension-wheel: extension ## the wheel of the extension, pages within, in dist/
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

slurm-up: install ## a real Slurm of four nodes on this machine, to try the cluster path; as root it installs what it needs
	$(BIN)/python tests/rig/slurm.py up

slurm-down: ## stop it, and whatever runs on it
	$(BIN)/python tests/rig/slurm.py down

lint: install
	$(BIN)/ruff check .
	$(BIN)/mypy

test: install lint test-kernels test-extension ## everything that has to pass before a change lands (< 20 minutes on 2 cores)
	$(QUICK)
	$(ISAACLAB)

test-all: install $(VENV)/.installed-slow lint test-kernels test-extension test-pages ## the same, with the slow tests (< 90 minutes)
	$(QUICK)
	$(ISAACLAB)
	$(SLOW)

# The kernel's half of rlnb runs on Pythons that have no Isaac Lab. pyenv shows no other Python than .python-version's unless it is told to.
test-kernels: $(UV)
	@for version in $(OTHER_PYTHONS); do \
		export PYENV_VERSION=$$version; \
		$(UV) python find --no-python-downloads $$version >/dev/null 2>&1 || { echo "Python $$version is not here: not tested on it"; continue; }; \
		echo "Python $$version"; \
		$(UV) venv --quiet --clear --no-python-downloads --python $$version .venv-$$version && \
		$(UV) pip install --quiet --python .venv-$$version/bin/python --constraint constraints.txt \
			$(EDITABLE) --editable '.[report,dev]' && \
		.venv-$$version/bin/python -m pytest -q $(KERNEL_TESTS) \
			-n 3 -m "not isaaclab and not slow and not gpu" || exit 1; \
	done

bench: install ## the benchmarks of benchmarks/RESULTS.md; nothing else should run meanwhile
	$(BIN)/python benchmarks/against_isaaclab.py
	$(BIN)/python benchmarks/steps_per_s.py
	$(BIN)/python benchmarks/steps_per_s.py --library rl_games --case 0
	$(BIN)/python benchmarks/steps_per_s.py --library skrl --case 0
	$(BIN)/python benchmarks/steps_per_s.py --auto
	$(BIN)/python benchmarks/ranks_learning.py
	$(BIN)/python benchmarks/contract.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/time_of_a_step.py
	$(BIN)/python benchmarks/kernel_side.py
	$(BIN)/python benchmarks/edit_loop.py
	$(BIN)/python benchmarks/swap.py
	$(BIN)/python benchmarks/first_image.py
	$(BIN)/python benchmarks/cycles.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/events.py
	$(BIN)/python benchmarks/dashboard.py
	$(BIN)/python benchmarks/lists.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/painted.py
	$(BIN)/python benchmarks/demo.py
	$(BIN)/python benchmarks/cold_start.py starts
	$(BIN)/python benchmarks/cold_start.py together
	$(BIN)/python benchmarks/cold_start.py hang
	$(BIN)/python benchmarks/cold_start.py packs

clean:
	rm -rf $(VENV) .venv-* $(OUT) dist docs/_build .pytest_cache .mypy_cache .ruff_cache
