# What can be done with this checkout. `make` alone lists it.

GO        ?= go
# What is compiled for one checkout, or for a release, serves all others, too.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
PKG       ?= ./...
# SQLite itself is left out, with its allocator: it is C that was translated to Go, without any goroutine of its
# own, and looking for races in it takes four times as long as the tests. Name no package here
# that uses sync.Map: the linker keeps one copy of it for the whole program, and one that does
# not tell of its locks lets races be seen where there are none. Traces of calls need no DWARF, and linking is faster without.
RACE      ?= -race -ldflags=-w -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false -gcflags=modernc.org/memory=-race=false
# Most tests wait for something now and then, so one package more than there are processors run side by side. Twice as many
# as processors left none idle, and tests timed out.
PACKAGES  ?= $(shell expr 1 + "$$(getconf _NPROCESSORS_ONLN)")
# The packages whose tests take longest begin first, so that none is left alone at the end.
LONGEST   ?= $(if $(filter ./...,$(PKG)),./cmd/parley/e2e/... ./tools/sandbox ./agent/worker)
TIMEOUT   ?= 40m
RUN       ?=
BENCH     ?= .
COUNT     ?= 3
FUZZTIME  ?= 10s
SEEDS     ?= random
MESSAGES  ?= 5000
TABLE     ?=
N         ?= 20000
TURNS     ?= 3
DATABASE  ?=
PLATFORMS ?= linux-amd64 linux-arm64 linux-armv7 darwin-arm64 darwin-amd64
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# vet is lint's and not done twice.
TESTS = -vet=off -p $(PACKAGES) -timeout $(TIMEOUT) $(if $(RUN),-count 3 -run '$(RUN)') $(LONGEST) $(PKG)
# What the tests run beside: a Redis, a PostgreSQL and, where the web page or pictures are among them, a browser; where the
# dashboard is, a Prometheus.
BESIDE = $(if $(filter ./... ./cmd/parley/... ./cmd/parley/e2e/... %/e2e/page %/e2e/files %/doctor ./tools/... %/tools/canvas,$(PKG)),.ci/chromium) .ci/servers \
	$(if $(filter ./... ./cmd/parley/... ./cmd/parley/e2e/... %/e2e/operation,$(PKG)),--prometheus)
# The tests of processes that are killed.
FLEET = Fleet|Elsewhere|RollingRestart|RedisAway|Paused

# The revision comes from git through Go's own stamp; outside of a checkout there is none.
VCS   := $(shell git rev-parse --verify -q HEAD >/dev/null 2>&1 && echo true || echo false)
BUILD  = CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=$(VCS) -ldflags '-s -w -X main.version=$(VERSION)'

GOLANGCI = $(GO) tool -modfile=.ci/lint/go.mod golangci-lint

# Addresses of package registries and paths of somebody's machine.
FOREIGN = (^|[^A-Za-z0-9_.$$-])/(roo[t]|wor[k])/|prox[y]\.golang|registr[y]\.npmjs|de[b]\.debian|pyp[i]\.org

.DEFAULT_GOAL := help
.PHONY: help arrows texts recipes chart demo demo-check page page-check build test race fleet chaos mcp bench scale soak fuzz cover release clean \
	lint lint-format lint-vet lint-fix lint-imports lint-arrows lint-texts lint-code lint-names lint-sizes lint-commits

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

build: ## build bin/parley, static, for this machine
	$(BUILD) -o bin/parley ./cmd/parley

test: ## run every package's tests beside Redis and PostgreSQL (PKG=./bus/... a part, RUN=regexp three times)
	$(BESIDE) $(GO) test $(TESTS)

race: ## run the same tests under the race detector
	$(BESIDE) $(GO) test $(RACE) $(TESTS)

fleet: ## test a fleet of processes over real servers, killed, stopped and restarted (two minutes)
	PARLEY_FLEET=1 .ci/servers $(GO) test -vet=off -timeout 30m -count $(if $(RUN),3,1) -run '$(or $(RUN),$(FLEET))' ./cmd/parley/chaos

chaos: ## kill and stop everything at random under load, and check every promise (SEEDS="1 2" or random, MESSAGES=5000, BUS=sentinel or cluster)
	PARLEY_FLEET=1 .ci/servers $(GO) test -count 1 -timeout 24h -run '^TestChaos$$|^TestAHostile' -v ./cmd/parley/chaos \
		-args -chaos.seeds '$(SEEDS)' -chaos.messages $(MESSAGES) -chaos.table '$(TABLE)' -chaos.bus '$(BUS)'

mcp: ## test the MCP client against the official conformance suite and npm's servers (npm brings them)
	.ci/node mcp .ci/servers $(GO) test -count 1 -timeout $(TIMEOUT) -run 'Conformance|FilesystemServer|EverythingServer' -v ./tools/mcp

lint: lint-format lint-vet lint-fix lint-imports lint-arrows lint-texts lint-code lint-names lint-sizes lint-commits ## check everything but the tests: format, vet, linters, import rules

arrows: ## print which uses between a package's files point up, and what is nearly full (PKG=./bus/...)
	$(GO) run ./.ci/arrows -v $(PKG)

texts: ## print what people read, for whoever goes through it (PKG=./channels/... is a part)
	@$(GO) run ./.ci/texts $(patsubst ./%/...,%,$(filter-out ./...,$(PKG)))

recipes: ## follow the recipes of docs/recipes.md on a copy, and lint and test what they add
	$(GO) test ./.ci/recipes
	$(GO) run ./.ci/recipes

chart: build ## lint and render the Helm chart of deploy/helm, and run a fleet as it says
	.ci/servers sh -c 'cd .ci/helm && $(GO) vet . && $(GO) test -count 1 .'

page: ## bundle the web page, from channels/web/page/src to dist
	$(GO) generate ./channels/web/page

page-check: # whether the bundle is what its sources make, their types are right, and everybody can use the page (npm brings the compiler and axe-core)
	cd .ci/page && $(GO) vet . && $(GO) run . -check ../../channels/web/page
	.ci/node page .ci/page/check
	.ci/node page .ci/chromium $(GO) test -count 1 -run Accessible ./cmd/parley/e2e/page

demo: build ## record the terminal that the README shows, in docs/demo.svg
	$(GO) run ./.ci/demo bin/parley docs/demo.svg

demo-check: build
	$(GO) run ./.ci/demo -check bin/parley docs/demo.svg

# Each part is a target of its own: `make -k lint` goes on after a finding.
lint-format:
	@out=$$(find . -name '*.go' -not -path './.*' -exec gofmt -l {} +); \
		if [ -n "$$out" ]; then echo "not as gofmt has it:"; echo "$$out"; exit 1; fi

lint-vet:
	$(GO) vet ./...
	$(GO) vet -tags chaos ./...

lint-fix:
	$(GO) fix -diff ./...

lint-imports:
	$(GO) test cmd/parley/imports_test.go

# A package that has to be known whole to be understood, or a type that does not fit in the head.
lint-arrows:
	$(GO) test ./.ci/arrows
	$(GO) run ./.ci/arrows

# What people read stands in one file of each package.
lint-texts:
	$(GO) test ./.ci/texts

lint-code:
	$(GOLANGCI) run

lint-names:
	@if [ $(VCS) = true ] && git grep --untracked -nIE '$(FOREIGN)' -- . ':!go.sum' ':!.ci/lint/go.sum'; then \
		echo "these lines name a path or a registry of some machine"; exit 1; fi

# Files that were built here don't belong in the repository, and only they are this big.
lint-sizes:
	@if [ $(VCS) = true ] && git ls-tree -r -l HEAD | awk '$$4 > 500000 && $$5 != "tools/documents/pdf/pdfium.wasm.gz" { print $$5; found = 1 } END { exit !found }'; then \
		echo "these files are bigger than 500 KB: git rm --cached what was built"; exit 1; fi

# Commits before this one have titles of another form.
TITLED_SINCE = ee69f3bc19a7

# A title is "area: Do something", as CONTRIBUTING.md says. That it is imperative, no program
# can tell for sure: a first word that ends as other forms do is refused.
lint-commits:
	@if [ $(VCS) = true ] && git cat-file -e '$(TITLED_SINCE)^{commit}' 2>/dev/null; then \
		git log --no-merges --format='%h %s' $(TITLED_SINCE)..HEAD | \
			awk '{ title = substr($$0, length($$1) + 2); word = title; sub(/^[^:]*: /, "", word); sub(/ .*/, "", word) } \
				length(title) > 72 || title !~ /^[a-z0-9_.][a-z0-9_\/., -]*: [A-Z]/ || word ~ /([^s]s|ed|ing)$$/ && word !~ /^(Focus|Bias|Alias|Canvas|Embed|Feed|Need|Shed|Speed|Seed|Bring|String|Ping)$$/ \
				{ print "the commit " $$0; found = 1 } END { exit found }' || \
			{ echo 'titles are "area: Do something", imperative, of 72 characters at most'; exit 1; }; \
	fi

scale: ## measure the lists, sums and erasures of a home with very many conversations (N=20000, TURNS=3 of each, DATABASE=sqlite or postgres)
	PARLEY_SCALE=$(N) PARLEY_SCALE_TURNS=$(TURNS) .ci/servers $(GO) test -vet=off -count 1 -timeout 24h -run '^TestScale$$/$(DATABASE)' -v ./cmd/parley/e2e/scale

bench: ## run every benchmark, package by package (BENCH=regexp, COUNT=3)
	@dirs=$$($(GO) list -f '{{.Dir}}' $(PKG) | while read -r d; do \
			grep -qsE '^func Benchmark' "$$d"/*_test.go && echo "$$d"; done); \
		if [ -z "$$dirs" ]; then echo "no benchmarks in $(PKG)"; exit 0; fi; \
		.ci/servers $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -p 1 -timeout 60m $$dirs
	@if [ '$(PKG)' = ./... ]; then cd .ci/bench && $(GO) test -run '^$$' -bench '$(BENCH)' -timeout 60m .; fi

SOAK = 1h
soak: ## leave the web page open beside a conversation that goes on (SOAK=1h): it must not grow
	PARLEY_PAGE_SOAK=$(SOAK) .ci/chromium .ci/servers $(GO) test -count 1 -v -timeout 24h -run OpenPage ./cmd/parley/e2e/page

fuzz: ## fuzz every fuzz test for a while (FUZZTIME=10s)
	@set -e; $(GO) list -f '{{.Dir}}' $(PKG) | while read -r d; do \
		for name in $$(cat "$$d"/*_test.go 2>/dev/null | sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p'); do \
			GO='$(GO)' .ci/fuzz "$$d" "$$name" $(FUZZTIME); \
		done; \
	done

cover: ## measure what the tests reach, in coverage.out
	$(BESIDE) $(GO) test -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=coverage.out $(PKG)
	@$(GO) tool cover -func=coverage.out | tail -n 1

release: ## build dist/ for every platform, with SHA256SUMS
	rm -rf dist
	mkdir dist
	@set -e; for p in $(PLATFORMS); do \
		arch=$${p#*-}; \
		echo "dist/parley-$(VERSION)-$$p"; \
		GOOS=$${p%%-*} GOARCH=$${arch%v7} GOARM=7 $(BUILD) -o "dist/parley-$(VERSION)-$$p" ./cmd/parley; \
	done
	@cd dist && if command -v sha256sum >/dev/null; then sha256sum parley-*; else shasum -a 256 parley-*; fi > SHA256SUMS
	@cat dist/SHA256SUMS

clean: ## remove what make has built
	rm -rf bin dist coverage.out coverage.html
