# The commands of this repository. `make demo` first; `make` alone lists them.
SHELL := /bin/bash
export HPCOPS_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hpcops
# What cargo makes on the way is shared by all checkouts; what it hands out stays in each. Cargo tells files apart by time
# alone, so the crates at the root of the workspace read this variable, and are built again for another checkout.
export CARGO_BUILD_BUILD_DIR ?= $(HPCOPS_CACHE)/build
export HPCOPS_CHECKOUT := $(CURDIR)
# Not inherited: programs are looked for in this checkout.
unexport CARGO_TARGET_DIR
LAB := target/debug/hpc-lab

.PHONY: help demo test test-full mutants repeat lab-up lab-down lab-status check bench aws-smoke generate install build

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

demo: build ## the quickstart on this machine: a cluster, a real MPI job, its numbers
	@$(LAB) demo

test: ## all tests, the lab included; prints seconds per stage and the ten slowest stories
	@e2e/make/run.sh test

test-full: ## the same with every kill point, the random walks and the mutants
	@e2e/make/run.sh full

mutants: install ## break the planner on purpose and see the named tests turn red
	@operator/plan/tests/mutants/run.sh

repeat: build ## one story many times: make repeat STORY=name N=20
	@test -n "$(STORY)" || { echo "usage: make repeat STORY=name [N=20]" >&2; exit 2; }
	@e2e/make/stories.sh "$(STORY)" --times $(or $(N),20) --jobs 1

lab-up: build ## start control plane, simulated AWS and operator; then: . .lab/env
	@$(LAB) up

lab-down: ## stop them and see that nothing is left
	@if [ -x $(LAB) ]; then $(LAB) down; else echo "no lab was built here"; fi

lab-status: ## what of the lab runs
	@if [ -x $(LAB) ]; then $(LAB) status; else echo "no lab was built here"; fi

check: ## format, lints, unit tests, generated files, dependencies: before every commit
	@e2e/make/run.sh check

bench: build ## the goals as one JSON object per row: {goal, value, pass}
	@cargo build --release --package hpc-operator --quiet
	@mkdir -p .lab/bench && ln -sf ../../target/release/hpc-operator ../../target/debug/awssim .lab/bench/
	@code=0; HPCOPS_BIN_DIR=$(CURDIR)/.lab/bench $(LAB) bench || code=1; \
	cargo run --release --quiet --package hpc-bench --example throughput || code=1; exit $$code

aws-smoke: ## for a person with an AWS account: one head, two small nodes, a hard cost cap
	@e2e/make/aws-smoke.sh

generate: ## write the CRDs and every other generated file
	@e2e/make/generate.sh

install:
	@e2e/make/install.sh

build: install
	@e2e/make/tools.sh >/dev/null
	@cargo build --workspace --all-targets
