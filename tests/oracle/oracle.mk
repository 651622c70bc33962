# The oracle: real frameworks on a pretended GPU. `make oracle` writes tests/golden/oracle, `make oracle-check` compares.
ORACLE        := tests/oracle
ORACLE_VENV   := .oracle-venv
ORACLE_PYTHON := $(ORACLE_VENV)/bin/python
ORACLE_SHIM   := $(ORACLE)/build/fakecuda.so
PYTHON        ?= python3.11

# torch first and alone, so that no other package pulls a CUDA build of it
$(ORACLE_VENV)/.installed: $(wildcard $(ORACLE)/requirements*.txt)
	test -x $(ORACLE_PYTHON) || $(PYTHON) -m venv $(ORACLE_VENV)
	$(ORACLE_PYTHON) -m pip install -q -r $(ORACLE)/requirements-torch.txt
	$(ORACLE_PYTHON) -m pip install -q -r $(ORACLE)/requirements.txt
	for release in 4.44 4.57; do \
		$(ORACLE_PYTHON) -m pip install -q --upgrade --target $(ORACLE_VENV)/frameworks/$$release \
			-r $(ORACLE)/requirements-$$release.txt || exit 1; \
	done
	touch $@

$(ORACLE_SHIM): $(ORACLE)/fakecuda.cpp $(ORACLE_VENV)/.installed
	mkdir -p $(dir $@)
	TORCH=$$($(ORACLE_PYTHON) -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])') && \
	g++ -std=c++20 -O1 -shared -fPIC -I$$TORCH/include $< -o $@ -L$$TORCH/lib -Wl,-rpath,$$TORCH/lib -lc10 -ltorch_cpu

.PHONY: oracle-environment oracle oracle-check
oracle-environment: $(ORACLE_SHIM)

oracle: oracle-environment  ## measure every truth again and write tests/golden/oracle (TRUTH=name for one)
	$(ORACLE_PYTHON) $(ORACLE) record $(TRUTH)

oracle-check: oracle-environment  ## measure a sample (FULL=1: everything) and compare exactly
	$(ORACLE_PYTHON) $(ORACLE) check $(TRUTH) $(if $(FULL),--full)
