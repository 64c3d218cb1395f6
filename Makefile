# Targets: demo test check fuzz bench peers publish killrun resumerun differential faults mutants cover vuln servers requirements

GO ?= go
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check

# tools/ has the versions of the tools and no package.
MODULES := $(sort $(dir $(shell find . -name go.mod -not -path './.*/*' -not -path './tools/*')))
SYSTEMS := linux darwin windows
FUZZTIME ?= 5s
TIMEOUT ?= 4m
SERVERS := redis-server:redis-server redis-sentinel:redis-sentinel beanstalkd:beanstalkd

.PHONY: demo test check format vet staticcheck house vuln fuzz bench peers killrun resumerun differential servers requirements

# 100,000 jobs made of the files of the Go installation, into a server inside the process, and back.
demo:
	cd jobs && $(GO) build -o bin/jobsub ./cmd/jobsub && bin/jobsub demo

# Everything, under the race detector. Tests that need a server that is not there are skipped and say so;
# FULLDUPLEX_REQUIRE_SERVERS=1 makes them fail.
# The allocation tests run without the race detector, which allocates itself.
test: servers
	@bad=; for m in $(MODULES); do \
	  (cd $$m && $(GO) test -race -timeout $(TIMEOUT) ./... && $(GO) test -timeout $(TIMEOUT) -run Alloc ./...) || bad="$$bad $$m"; \
	done; if [ -n "$$bad" ]; then echo "failed in:$$bad"; exit 1; fi

check: format vet staticcheck house

format:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not formatted:"; echo "$$bad"; exit 1; fi

vet:
	for m in $(MODULES); do for s in $(SYSTEMS); do (cd $$m && GOOS=$$s $(GO) vet ./...); done; done

# Its settings are in staticcheck.conf. For this system only: what no system uses shows here, what one lacks in vet.
staticcheck:
	$(GO) build -C tools -o bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@bin=$$PWD/tools/bin/staticcheck; bad=; for m in $(MODULES); do (cd $$m && "$$bin" ./...) || bad="$$bad $$m"; done; \
	if [ -n "$$bad" ]; then echo "staticcheck failed in:$$bad"; exit 1; fi

# Known vulnerabilities of what is used, by govulncheck and the database at vuln.go.dev. DB=x for another one: a URL, or
# a directory with a copy. Not part of check: the answer changes without the code.
vuln:
	@.ci/vuln '$(DB)' $(MODULES)

# Import table, file sizes, leak checks, requirement ids. Never from the test cache.
house:
	$(GO) test -count=1 ./internal/house

# Each fuzz target for FUZZTIME.
fuzz:
	.ci/fuzz $(FUZZTIME) $(MODULES)

bench:
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./bench

# This library and other clients side by side: tables, a chart and the bars. QUICK=1 for the
# best peers of the last full result only, BARS=B1.64,B4 for some bars.
peers:
	cd bench/peers && $(GO) build -o bin/peers . && bin/peers $(if $(QUICK),-quick) $(if $(BARS),-bars $(BARS))

# Puts the tables and the chart of the newest full result of make peers into README.md and docs.
.PHONY: publish
publish:
	cd bench/peers && $(GO) build -o bin/peers . && bin/peers -publish ../..

# 100,000 random commands through the engine and through another client, one at a time: the same replies.
differential: servers
	cd bench/peers && $(GO) test -v -timeout 20m ./differential -args -differential.commands=100000

# jobsub interrupted ten times by SIGINT and ten times by SIGKILL during 100,000 jobs, and resumed each time.
resumerun: servers
	cd jobs && $(GO) test -v -timeout 20m -run InterruptedAndKilled ./cmd/jobsub -args -resume.jobs=100000 -resume.count=10 -resume.rate=20000

# 200,000 jobs at 20,000 a second while the server is killed with -9 and started again five times, for streams,
# lists and tubes, with jobs that are never retried and with jobs that are.
killrun: servers
	cd jobs && $(GO) test -v -timeout 10m -run Kill9 ./target -args -kill.jobs=200000 -kill.count=5

# Faults at every place, judged by the servers, in about a quarter of an hour: docs/FAULTS.md. SEED=n makes the random
# choices of an earlier run again.
.PHONY: faults
faults: servers
	$(GO) run ./internal/faults/cmd/faults $(if $(SEED),-seed $(SEED))

# Breaks the library in about a hundred small ways, one at a time and never in the tree itself, and shows that a test
# notices each. ONLY=x for those whose name matches, TIMES=n to run the tests n times, none of which may stay green.
.PHONY: mutants
mutants:
	$(GO) run ./internal/mutants/cmd/mutants $(if $(ONLY),-only '$(ONLY)') $(if $(TIMES),-times $(TIMES))

# The statements of the core that its own tests and those of redis run, in per cent by package. Below 95 is a failure.
CORE := carry fdengine panics pool
comma := ,
space := $(subst ,, )
.PHONY: cover
cover:
	@profile=$$(mktemp); trap 'rm -f "$$profile"' EXIT; \
	$(GO) test -count=1 -coverprofile="$$profile" -coverpkg=$(subst $(space),$(comma),$(CORE:%=./%)) $(CORE:%=./%) ./redis >&2; \
	awk '/^mode/ {next} {n[$$1]=$$2; hit[$$1]+=$$3} \
	  END {for (b in n) {p=b; sub(/\/[^\/]*$$/,"",p); sub(/.*\//,"",p); all[p]+=n[b]; if (hit[b]) ran[p]+=n[b]} \
	    for (p in all) {c=100*ran[p]/all[p]; printf "%-10s %.1f%% of %d statements\n",p,c,all[p]; bad=bad||c<95}; exit bad}' "$$profile"

# Brings the last column of docs/REQUIREMENTS.md up to date.
requirements:
	$(GO) run ./internal/house/cmd/requirements

# Installs the servers that the tests start, where that is possible; else says which packages have them.
servers:
	@missing=(); for s in $(SERVERS); do command -v "$${s%%:*}" >/dev/null || missing+=("$${s##*:}"); done; \
	if [ "$${#missing[@]}" -eq 0 ]; then exit 0; fi; \
	if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
	  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "$${missing[@]}"; } >&2 </dev/null \
	    || echo "could not install $${missing[*]}: tests that need them are skipped" >&2; \
	else echo "tests that need a server are skipped; the Debian packages are: $${missing[*]}" >&2; fi
