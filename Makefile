# Everything a newcomer needs: `make serve` runs a gateway, `make test` runs the tests. Both build what they need first.
# Variables: ARGS (more arguments of the command), HOURS (of make soak), PYTHON (which Python builds .venv), PEERS=no (install no test peers).

ARGS ?=
PEERS ?= yes
HOURS ?= 1
export PYTHON PEERS

.DEFAULT_GOAL := help
.PHONY: help serve install test test-fast test-all lint check wheel image release bench bench-peer soak lock clean

help:
	@echo "make serve   run a gateway on https://localhost:30443, data in ./var   (ARGS='--demo' loads a sample table)"
	@echo "make test    run the tests, with the programs they talk to         (ARGS='-k name' picks some, ARGS='-n 0' uses one process)"
	@echo "make test-fast   the tests that need nothing but .venv: a minute   make test-all   all that make test samples: hours"
	@echo "make lint    style, formatting          make check   types        make bench   benchmarks"
	@echo "make wheel   build the wheel, install it into an empty environment, run README's first session with it"
	@echo "make image   build the image with Podman or Docker              make release   all that is published, tried, in ./dist"
	@echo "make bench-peer   ours beside the real Hive Metastore (needs Java and PostgreSQL; ARGS='--quick' for a first look)"
	@echo "make soak   every door under load while one thing after the other fails   (HOURS=1)"
	@echo "make lock    write the lock files anew               make clean   remove environment and caches, keep ./var"

serve: .venv/.installed-runtime
	@exec .venv/bin/hms-gateway serve --data-dir ./var $(ARGS)

install: .venv/.installed-dev

test: .venv/.installed-dev
	@scripts/peers
	@scripts/pytest $(ARGS)

test-fast: .venv/.installed-dev
	@scripts/test-fast $(ARGS)

# A release runs it. A test of hours does not hang.
test-all: .venv/.installed-dev
	@scripts/peers all
	@HMS_TESTS=all scripts/pytest -o faulthandler_timeout=21600 $(ARGS)

# `.venv/bin/ruff format .` formats.
lint: .venv/.installed-dev
	@.venv/bin/ruff check . $(ARGS)
	@.venv/bin/ruff format --check .

# Strict over the package and the tools; over helpers of tests and benchmarks as pyproject.toml says. Test functions are not
# annotated; what they call is.
check: .venv/.installed-dev
	@.venv/bin/mypy $(ARGS)
	@find tests benchmarks -name '*.py' ! -name 'test_*.py' ! -path '*/node_modules/*' -print0 | xargs -0 .venv/bin/mypy $(ARGS)

wheel: .venv/.installed-dev
	@scripts/wheel $(ARGS)

# ARGS are options of `docker build`, such as --build-arg EXTRAS=ldap,otel.
image: .venv/.installed-runtime
	@scripts/image $(ARGS)

# ARGS are those of make image.
release: .venv/.installed-dev
	@scripts/release $(ARGS)

# ARGS names one table: tjson, http, storage, server, locks, edge.
bench: .venv/.installed-dev
	@.venv/bin/python -m benchmarks $(ARGS)

# Without ARGS 20 minutes; writes docs/peer.json, docs/peer.svg and the tables of docs/reference/measurements.md. Wants Java, PostgreSQL
# and its JDBC driver (tests/oracle/README.md).
bench-peer: .venv/.installed-dev
	@.venv/bin/python -m benchmarks.peer $(ARGS)

# Before a release.
soak: .venv/.installed-dev
	@.venv/bin/python -m benchmarks soak --hours $(HOURS) $(ARGS)

lock:
	@scripts/lock $(ARGS)

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist tests/interop/node/node_modules
	find app tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps make every later run immediate; a newer lock file or project file builds again.
.venv/.installed-runtime: requirements/runtime.txt requirements/build.txt pyproject.toml scripts/install
	@scripts/install runtime

.venv/.installed-dev: requirements/dev.txt requirements/runtime.txt requirements/build.txt pyproject.toml scripts/install
	@scripts/install dev
