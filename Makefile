# `make demo` and `make test` do everything, set-up included. Both are safe to repeat.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/sh
BIN := .venv/bin
# Compiling anew what every `vsml` imports would take half its CPU time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help browser setup demo test test-gpu test-long check coverage lint types layers go-test py-test packages bench-provision bench-commands bench-peers bench-guests bench-overhead bench-engines bench-placement bench-boots bench-large-files bench-first-hour fuzz lock clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

packages: # without root they are named, and what needs them is skipped aloud
	@scripts/machine-packages setup guests training access tests || [ "$$(id -u)" -ne 0 ]

browser: # for tests of the pages
	@scripts/machine-packages browser || [ "$$(id -u)" -ne 0 ]

setup: ## .venv and the lab's programs, once
	@scripts/setup
	@$(BIN)/vsml lab build >/dev/null

demo: ## the main job end to end on an embedded lab vCenter
	@scripts/demo

test: check ## everything CI runs

check: packages setup ## lint, types, layers and every test that a change has to pass
	$(BIN)/python scripts/rings.py

test-gpu: setup ## the benchmark on an NVIDIA GPU, as root; ranks run with VSML_GPU_PYTHON, which has PyTorch
	$(BIN)/python -m pytest -n 0 tests/gpu tests/unit/guest/facts/test_real_gpu.py tests/unit/bench/probe/test_nccl_tests.py

test-long: packages browser setup ## what takes long: each answer broken in turn, a gigabit, statistics by the hundred, fuzz
	$(BIN)/python scripts/rings.py coverage faults long fuzz

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

layers:
	$(BIN)/lint-imports

go-test:
	scripts/go-test

py-test:
	$(BIN)/python scripts/rings.py unit labs e2e alone

bench-provision: setup ## speed against a limit or a peer in the same run
	$(BIN)/python -m benchmarks.provision

bench-commands: setup ## whole commands against pyVmomi alone, parallel govc and paramiko (guests need root on Linux)
	$(BIN)/python -m benchmarks.whole_commands

bench-peers: setup ## a provision of 8 VMs against vhpc-toolkit, Ansible and OpenTofu, which it builds the first time
	$(BIN)/python -m benchmarks.peers

bench-guests: setup ## a look at 32 lab guests against a bare SSH loop (needs root on Linux)
	$(BIN)/python -m benchmarks.guests

bench-overhead: setup ## a script under `vsml bench` against horovodrun alone (needs root on Linux)
	$(BIN)/python -m benchmarks.overhead

bench-engines: setup ## each engine at 50 Mbit/s against the bound, and under `vsml bench` against its launcher alone (needs root on Linux)
	$(BIN)/python -m benchmarks.engines

bench-placement: setup ## CPU time of placing 64 to 512 VMs on 1,000 hosts
	$(BIN)/python -m benchmarks.placement

bench-boots: setup ## how soon 64 lab guests stand, and what they take (needs root on Linux)
	$(BIN)/python -m benchmarks.boots

bench-large-files: setup ## CPU time of checking 8,000 nodes, and memory of commands that read 256 MiB
	$(BIN)/python -m benchmarks.large_files

coverage: setup ## unit tests, and which lines and branches none of them reaches
	$(BIN)/python scripts/rings.py coverage

fuzz: setup ## hostile inputs for FUZZ_SECONDS (60) a target: files, templates, logs, topologies
	$(BIN)/python -m tests.fuzz

bench-first-hour: packages setup ## the demo from a bare clone in a bare root, timed (needs root on Debian or Ubuntu)
	$(BIN)/python -m benchmarks.first_hour

lock: ## renew the locked requirements (needs uv)
	scripts/lock

clean: ## remove what was made here, and the lab's cache, by name and size
	@scripts/clean
