# Each target sets up what it needs: system packages, crates, guest kernel. `make` alone explains.
.DEFAULT_GOAL := help
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: help demo test bench setup systems nightly second-opinion fuzz shell format

help: ## this list
	@echo "Glassvisor: KVM in user space, on a modelled x86-64 machine. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24
	@echo "Variables of demo and shell: KERNEL=6.12|6.1 CPUS=1..16 MEMORY=512M CPU=MODEL TIME=virtual|real APPEND='...'"

export KERNEL CPUS MEMORY CPU TIME APPEND

demo: ## boot a Debian kernel on the modelled machine and show what happened
	@tools/setup.sh build guest
	cargo build --release -p vmm --bin glassvisor
	@tools/demo.sh

shell: ## the same, to an interactive shell in the guest
	@$(MAKE) --no-print-directory demo TIME=real APPEND="gv.shell $(APPEND)"

test: ## formatting, lints, tiers, licences, unit tests, boot tests: what CI runs
	@tools/setup.sh build guest guest32
	@tools/test.sh

bench: ## compare with native and QEMU: table, JSON and picture in out/bench (BENCH='--smoke' for a short run)
	@tools/setup.sh build guest bench
	@guest/fetch-kernel.sh 6.12
	@guest/build-initramfs.sh 6.12
	cargo build --release -p vmm --bin glassvisor -p lab
	cargo run -q --release -p lab -- bench --out out/bench $(BENCH)

systems: ## run real systems: Debian's 32-bit kernel and programs; Debian on a disk with systemd, apt, Python, stress-ng
	@tools/setup.sh build guest guest32 systems
	@tools/systems.sh $(SYSTEMS)

nightly: ## what takes longer: cargo-deny, many cases, QEMU cross-check, short benchmark
	@tools/setup.sh
	@tools/test.sh
	cargo build --release -p vmm --bin glassvisor
	@tools/nightly.sh

second-opinion: ## run the guest cases on this machine's /dev/kvm as well, and compare (optional)
	@tools/setup.sh build
	GLASSVISOR_SECOND_OPINION=/dev/kvm cargo test -q -p hypervisor --test guests

fuzz: ## fuzz the processor with libFuzzer, an hour for each of four targets (FUZZ="60 vmcs" for less)
	@tools/setup.sh build
	@tools/fuzz.sh $(FUZZ)

setup: ## install system packages and Rust where missing
	@tools/setup.sh

format: ## format all Rust code
	cargo fmt --all
