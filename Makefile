# What a fresh machine needs is python3, apt and make; every target does the rest of its set-up itself.

VENV := .venv
PYTHON := $(VENV)/bin/python
# Suites of Debian whose HTCondor the pool tests run on: forky has 25.14.1, all tests; trixie 23.9.6, those that pin
# what HTCondor does.
SUITE := forky
SEMANTICS_SUITE := trixie
# Pool tests run side by side, a file and a version at a time: they wait for daemons most of the time.
POOLS := 5

# Meant for other programs: another pool's configuration (`poolbox up` recommends an export), another Python's modules,
# or no bytecode, without which hundreds of Pythons would each compile all of sharectl again.
unexport $(filter PYTHON% CONDOR_CONFIG _CONDOR_% DPKG_%,$(.VARIABLES))

# Pythons of the packages with their own environment: this machine's for the deb; python3.12 of EL 8.10, 9.4 and 10.
DEB_PYTHON = $(shell /usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
RPM_PYTHON := 3.12

.PHONY: help demo test test-all check docs unit coverage pool bench man packages release venv tools clean

help:
	@echo "make demo   the loop, live, on a real HTCondor pool on this machine (4 minutes)"
	@echo "make test   lint, types, all tests on HTCondor 25.14.1, on 23.9.6 those of its semantics"
	@echo "make test-all   all tests on both versions, those that take minutes too; without a pool also on Python $(OTHER_PYTHONS)"
	@echo "make check  lint, types, and bounds of lines, words and keys (bench/house.py)"
	@echo "make docs   the documentation as a site, in dist/site"
	@echo "make unit   tests that need no pool"
	@echo "make pool   tests on real pools; SUITE=trixie SEMANTICS_SUITE=trixie for 23.9.6 alone"
	@echo "make coverage  unit, and which branches of the law and startd_cron/ it never takes"
	@echo "make bench  measurements, printed as ratios"
	@echo "make man    sharectl.1 and sharectl.yaml.5, in dist/man"
	@echo "make release  checks before a release; builds it, publishes nothing"
	@echo "make packages  debs, RPMs, wheel and sdist, in dist/; DEB_PYTHON=$(DEB_PYTHON) RPM_PYTHON=$(RPM_PYTHON)"
	@echo "make venv   the Python environment, in $(VENV)"
	@echo "make clean  remove $(VENV), those of other Pythons and the pools' cached roots"

demo: tools venv
	$(PYTHON) -m poolbox.demo

test: check docs unit pool

check: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python bench/house.py

# Broken links and anchors end it.
docs: venv
	$(VENV)/bin/mkdocs build --strict

# Neighbours stay with one worker, which then makes what they share once; a worker that is done takes from the other.
UNIT = $(PYTHON) -m pytest --ignore tests/pool -m "not pool" --numprocesses 2 --dist worksteal

unit: tools venv
	$(UNIT)

unit-%: .venv-%/.complete | tools
	$(<D)/bin/python -m pytest --ignore tests/pool --ignore tests/browser -m "not pool" --numprocesses 2 --dist worksteal

.venv-%/.complete: pyproject.toml
	python$* -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --editable '.[test]'
	touch $@

coverage: tools venv
	$(UNIT) --cov --cov-report=term

# Cases of other pools that need none run with the unit tests.
FIELD = $(shell grep -l "pytest.mark.pool" tests/field/test_*.py)
POOL = $(PYTHON) -m pytest tests/pool $(FIELD) --numprocesses $(POOLS) --dist loadfile --no-loadscope-reorder
# Minutes each, and one of them loads both cores: in test-all alone.
LONG = $(patsubst %,--ignore tests/pool/%.py,test_twin test_tune_on_pool test_two_central_managers)

pool: tools venv
	$(POOL) $(LONG) --suite $(SUITE) --semantics-suite $(SEMANTICS_SUITE)

# The oldest and the newest Python that users have: `python3.9` and `python3.13` must be in PATH.
OTHER_PYTHONS := 3.9 3.13

test-all: check docs unit $(OTHER_PYTHONS:%=unit-%) tools venv
	$(POOL) --suite forky
	$(POOL) --suite trixie

bench: tools venv
	set -e; for bench in $$(grep -l "^if __name__" bench/*.py); do echo "== $$bench"; $(PYTHON) $$bench; done

# The same commit gives the same bytes.
man: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
man: venv
	$(PYTHON) packaging/man.py dist/man

release: venv
	MAKE=$(MAKE) .ci/release

packages: tools venv
	$(PYTHON) packaging/build_packages.py --deb-python $(DEB_PYTHON) --rpm-python $(RPM_PYTHON)

venv: $(VENV)/.complete

$(VENV)/.complete: pyproject.toml constraints.txt | tools
	@echo "make: installing the Python packages of constraints.txt into $(VENV)"
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

tools:
	@.ci/tools

clean:
	rm -rf $(VENV) .venv-* $${XDG_CACHE_HOME:-$$HOME/.cache}/sharectl
