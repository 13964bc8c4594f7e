PYTHON ?= python3.12
VENV := .venv
BIN := $(VENV)/bin
PLUGINS := $(wildcard plugins/*)

.PHONY: install
install: $(VENV)/.installed

$(BIN)/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$$(sed -n 's/^uv==//p' constraints.txt)

$(VENV)/.installed: $(BIN)/uv pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt \
		$(foreach plugin,$(PLUGINS),--editable $(plugin)) --editable '.[report,lab,dev]' 'isaaclab==3.0.0'
	touch $@
