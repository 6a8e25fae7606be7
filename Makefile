# Every target with a "##" comment is listed by `make help`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
K8S ?= v1.37.2
CNI ?= calico
OUT ?= out
RELEASE ?= 2022
CACHE ?= .cache
GOFLAGS_LD := -s -w -X github.com/wbox-dev/wbox/cmd/wbox/internal/cli.version=$(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
STANDIN_ISO := $(CACHE)/stand-in-ws$(RELEASE).iso
CROSS := windows/amd64 darwin/arm64 linux/arm64

REAL_K8S ?= v1.34.4 v1.36.3 v1.37.2

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

.PHONY: build
build: bin/wbox ## compile wbox into bin/

bin/wbox: FORCE
	go build -trimpath -ldflags '$(GOFLAGS_LD)' -o $@ ./cmd/wbox

.PHONY: FORCE
FORCE:

.PHONY: setup-demo setup-test
setup-demo:
	@scripts/dev/setup.sh demo
setup-test:
	@scripts/dev/setup.sh test

.PHONY: stand-in
stand-in: setup-demo ## make the stand-in ISO (RELEASE=2025 for the other)
	@mkdir -p $(CACHE)
	go run ./scripts/standin/cmd/build-iso -release $(RELEASE) -pwsh "$$(scripts/dev/find-pwsh.sh --folder || true)" -o $(STANDIN_ISO)

.PHONY: demo
demo: build stand-in ## compile Kubernetes (K8S=v1.36.3 for another) and bake a box on the stand-in guest
	@scripts/dev/demo.sh bin/wbox --k8s $(K8S) --cni $(CNI) --windows $(RELEASE) --iso $(STANDIN_ISO) -o $(OUT)

.PHONY: test
test: setup-test ## everything CI checks: verify, unit tests, guest scripts, real VMs
	$(MAKE) verify unit guest-scripts e2e

.PHONY: unit
unit: ## unit tests: no network, no virtual machine, under a minute once compiled
	go test -short ./...

.PHONY: guest-scripts
guest-scripts: ## static check and Pester tests of the guest scripts (skipped without PowerShell, required in CI)
	scripts/dev/guest-scripts.sh

.PHONY: e2e
e2e: setup-test ## real parts: QEMU with the stand-in guest, Vagrant, a real compile
	go test -count=1 -timeout 40m $(E2E_FLAGS) ./...

.PHONY: chaos
chaos: setup-test ## kill and interrupt builds that run real machines, 20 times each; up to an hour, not in CI
	WBOX_TEST_CHAOS=20 go test -count=1 -timeout 90m -v -run TestBakeWithoutPowerShell ./cmd/wbox

.PHONY: real-k8s
real-k8s: ## compile real releases of Kubernetes twice each (REAL_K8S="v1.37.2" for others; ten CPU-minutes a minor)
	@for v in $(REAL_K8S); do WBOX_TEST_COMPILE=$$v go test -count=1 -timeout 3h -v -run TestRealModuleAll ./builder/kube || exit 1; done

.PHONY: test-windows
test-windows: ## the unit tests as Windows programs under wine (scripts/dev/setup.sh windows); what wine can't run is listed
	go run ./builder/internal/wine/wintest -prefix $(CACHE)/wine $(PKG)

.PHONY: bench-k8s
bench-k8s: ## measure wbox kube build beside go build on a real Kubernetes (K8S=v1.37.2; COLD=1 compiles twice from nothing)
	WBOX_BENCH_K8S=$(K8S) WBOX_BENCH_COLD=$(COLD) go test -count=1 -timeout 3h -v -run TestSpeed ./cmd/wbox

.PHONY: bench
bench: ## benchmarks of what is promised about time and memory, with the figures of builder/BENCHMARKS.md (WBOX_BENCH_DATA_MIB=256: smaller)
	go test -run '^$$' -bench . -timeout 30m ./builder ./builder/internal/engine ./builder/internal/cas
	go test -run '^$$' -bench Memory -benchtime 1x -timeout 30m ./cmd/wbox/internal/faulttest

.PHONY: lint
lint: ## golangci-lint if it is installed, go vet and gofmt anyway
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo "lint: golangci-lint is not installed, skipped"; fi

.PHONY: cross
cross: ## build and vet for the other systems that wbox runs on
	@for t in $(CROSS); do echo "cross: $$t"; GOOS=$${t%/*} GOARCH=$${t#*/} go vet ./... && GOOS=$${t%/*} GOARCH=$${t#*/} go build -o /dev/null ./cmd/wbox || exit 1; done

.PHONY: generate
generate: ## make what is generated anew
	go generate ./...

.PHONY: verify
verify: lint cross ## formatting, vet on all systems, shell scripts, generated files, names in READMEs
	@shellcheck scripts/dev/*.sh .ci/run
	@scripts/dev/verify.sh

.PHONY: clean
clean: ## remove what the targets above made in this checkout (not wbox's store)
	rm -rf bin $(CACHE) $(OUT)
