# Needs Go, a POSIX shell and make. Postgres, and Chromium for the tests, are
# found on the machine, or installed where that is possible without asking anybody
# for a password.

GO ?= go
FUZZTIME ?= 20s

# The newest line of RELEASES and the commits since it, as git describe would say it:
# a clone may lack tags. Without git, or in a shallow clone, it is "dev". The time is the
# commit's, so that two builds of one commit are the same file.
VERSION ?= $(shell set -- $$(awk '/^[0-9]/ { last = $$0 } END { print last }' RELEASES); \
	since=$$(git rev-list --count "$$2..HEAD" 2>/dev/null) || { echo dev; exit; }; \
	[ "$$since" = 0 ] && name=$$1 || name=$$1-$$since-g$$(git rev-parse --short=12 HEAD); \
	git diff --quiet HEAD 2>/dev/null || name=$$name-dirty; echo $$name)
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
BUILT := $(shell TZ=UTC0 git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null || echo unknown)
STAMP = -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.built=$(BUILT)

# The race detector needs a C compiler and the C library's headers. Without them the
# tests still run. A make inside of make is told, since it sees no compiler any more.
compiles := $(shell printf '\043include <stdlib.h>\nint main(void) { return 0; }\n' | $$($(GO) env CC) -x c -o /dev/null - >/dev/null 2>&1 && echo yes)
ifeq ($(origin RACE),undefined)
RACE := $(if $(filter yes,$(compiles)),$(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race))
endif
export RACE

# All else is built without cgo, as releases are: tests that build the program then find
# its packages in the cache of the tests, and need no build of their own.
export CGO_ENABLED := 0
raced := CGO_ENABLED=1

# A checkout that belongs to another user would stop the build at git's guard. Without
# what only a debugger reads, everything is built in seven eighths of the time; it is
# left out everywhere, so that all targets share the cache. `make build DEBUG=1` keeps it.
# With trimmed paths the keys of the caches do not depend on the checkout's folder, so
# a second clone builds and lints from the cache of the first.
GOFLAGS += -buildvcs=false
ifndef DEBUG
GOFLAGS += -gcflags=all=-dwarf=false -trimpath
endif
export GOFLAGS

# Where Go's caches cannot be written, as with a read-only home, they go into bin.
writable := $(shell for folder in "$$($(GO) env GOCACHE)" "$$($(GO) env GOMODCACHE)"; do \
	mkdir -p "$$folder" && [ -w "$$folder" ] || exit; done 2>/dev/null; echo yes)
ifneq ($(writable),yes)
export GOCACHE := $(CURDIR)/bin/.cache/build
export GOMODCACHE := $(CURDIR)/bin/.cache/mod
export STATICCHECK_CACHE := $(CURDIR)/bin/.cache/staticcheck
GOFLAGS += -modcacherw
endif

# Holds the payments sandbox to Stripe's description of its API: a module of its
# own, whose dependencies are none of ours.
FIDELITY := payments/sandbox/fidelity

# Holds the OpenAPI document to generators of clients: a module of its own too.
CLIENTS := api/clients

# Renders the Helm chart and holds it to Kubernetes' types: a module of its own, too.
CHART := deploy/charttest

# Runs Stripe's current clients against the sandbox: a module of its own, too.
SDKS := payments/sandbox/sdk

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build and start the server on ./data; ARGS="--addr :9000" adds arguments
	@[ -n "$$DATABASE_URL" ] || $(MAKE) --no-print-directory postgres
	@exec bin/purser serve $(ARGS)

.PHONY: build
build: ## Build bin/purser
	@echo "Building Purser…"
	@$(GO) build -ldflags '$(STAMP)' -o bin/purser ./cmd/purser

# Those that take longest begin. Most of what they do is done by other processes,
# and some of them wait, so they are tested beside the rest.
DRIVERS := ./cmd/purser ./web/browsertest ./payments/cashier ./cmd/...

# What this machine cannot run is left out, and said: programs in Python, the check of the
# unit by systemd, and the image's program in the image's root, which some users may not enter.
no_systemd = $(if $(shell command -v systemd-analyze),,^TestTheUnitIsOneThatSystemdAccepts$$)
no_roots = $(if $(shell { [ "$$(id -u)" = 0 ] && chroot / true || unshare --map-root-user chroot / true; } >/dev/null 2>&1 && echo yes),,^TestTheImageServesAsAnUnprivilegedUser$$/^entered$$)
# go test stops at the first pattern that fits the test above a subtest, so the widest is last.
lacks = $(strip $(no_systemd) $(no_roots) $(no_python))
unproven = $(if $(lacks),-skip '$(subst $() ,|,$(lacks))')
define say_unproven
@[ -z '$(no_systemd)' ] || echo "make: no systemd-analyze here, so systemd does not check deploy/purser.service" >&2
@[ -z '$(no_roots)' ] || echo "make: this user may not enter another root, so the image's program runs outside of it" >&2
endef

# Where goroutines share memory for the sake of speed. The race detector needs a
# second build of everything, and takes up to four times as long, so elsewhere it is
# left to `make race`. The helpers of the tests below store are raced with its tests;
# their own would need one more build of store.
RACED := ./store ./store/embedded/...

# The files whose tests are about memory that goroutines of a node share: the usage
# engine, the clock, readiness, counters and kept denials. In the rest of store
# goroutines meet in Postgres only, so its tests run without the race detector.
RACED_FILES := usage_*_test.go clock*_test.go readiness_test.go reports_stats_test.go reports_denials_test.go foreign_test.go
# Of these, tests that do one thing after the other and take long under the race detector.
SEQUENTIAL := TestHistoriesEndAsTheModelSays|TestInvariantsSeeWhatIsSpoilt
raced_tests = ^($(shell cd store && awk '/^func Test/ && sub(/.t$$/, "", $$2) { print $$2 }' $(RACED_FILES) | grep -v -x -E '$(SEQUENTIAL)' | paste -s -d '|' -))$$

# The slowest tests of store, which `make quick` leaves out.
SLOW := ^(TestHandlesLeadToOneTenant|TestHistoriesEndAsTheModelSays|TestVerify.*|TestARestoredDumpServesBehindItsWalls|TestTheSchemaCheckFinds|TestReportsReadLittle|TestPrepareRepairsGrantsAndPolicies|TestAnOwnerWithoutSuperpowersMigratesAndServes|TestPlansOfTheHotPathUseTheWholeKey|TestStrayApplicationsAreFoundInEveryTable|TestASpoiltAuditLogIsFound|TestInvariantsSeeWhatIsSpoilt|TestRefundsAndDisputes|TestApplySubscription|TestStatementsKeepTheRules|TestStatementRulesFind|TestStatementsAreUnderstoodByPostgres|TestNoStatementIsOutsideTheList|TestPlansOfTheSandboxUseItsIndexes|TestSealsOfAnEarlierReleaseAreMarked|TestCheckDurable)$$

.PHONY: test
test: format postgres chromium python compile ## Check and test everything
	@[ -n "$(RACE)" ] || echo "make: no C compiler here, so the race detector is off" >&2
	$(say_unproven)
	@$(MAKE) --no-print-directory --jobs=3 test-drivers test-store test-others

# For the loop of editing and testing: vet everything; test the packages that need no
# database, and the store without the race detector and its slowest tests. Packages
# that did not change come from Go's cache.
QUICK := ./fault ./ids ./tenancy/... ./keys ./metering/... ./billing ./payments/sandbox/engine ./payments/sandbox/form ./docs ./static ./store

.PHONY: quick
quick: format postgres ## Vet everything and test the domain packages and the store, in about a minute
	@GOGC=$(SHORT_LIVED) $(GO) vet ./...
	$(GO) test -timeout 10m -vet=off -skip '$(SLOW)' $(QUICK)

# Compilers, linters and tests allocate a lot on small heaps and end soon: with fewer
# garbage collections they take a tenth to a seventh less time. `make race` tests with as
# many as the server has.
SHORT_LIVED := 400

.PHONY: compile
compile:
	@echo "Building the tests…"
	@GOGC=$(SHORT_LIVED) $(GO) list -export -deps -test -f '' ./... >/dev/null
	@[ -z "$(RACE)" ] || $(raced) GOGC=$(SHORT_LIVED) $(GO) list $(RACE) -export -deps -test -f '' $(RACED) >/dev/null

# Not from the cache: what these tests see of Postgres and of the source tree is
# more than the cache knows of. The checks of vet are in lint. The time is for one
# package: the slowest takes minutes on two idle cores, and took 35 at a load of 20.
go_test = GOGC=$(SHORT_LIVED) $(GO) test -count=1 -timeout 90m -vet=off

.PHONY: test-drivers test-store test-others
test-drivers:
	$(go_test) $(unproven) -parallel 4 $(DRIVERS)
test-store:
	@cd store && ls $(RACED_FILES) >/dev/null # each names a file
	@$(if $(RACE),$(raced)) $(go_test) $(RACE) -run '$(raced_tests)' ./store
	$(if $(RACE),$(raced)) $(go_test) $(RACE) ./store/embedded/...
	@$(go_test) -skip '$(raced_tests)' ./store
test-others:
	$(go_test) $(unproven) $$($(GO) list ./... | grep -v -x -F "$$($(GO) list $(DRIVERS) $(RACED))")
	@$(MAKE) --no-print-directory lint
	cd $(FIDELITY) && $(go_test) ./...
	cd $(SDKS) && $(go_test) ./...
	cd $(CHART) && $(go_test) ./...

# Needs Node 20 and npm, which the rest does not: stripe-go runs with `make test`.
.PHONY: sdks
sdks: node ## Run the current stripe-go and stripe-node against the payments sandbox, verify webhooks with standardwebhooks, run TypeScript
	cd $(SDKS)/node && npm ci --no-audit --no-fund
	cd $(SDKS) && $(go_test) -tags sdks -v ./...
	cd notify/node && npm ci --no-audit --no-fund
	$(go_test) -tags sdks -v -run Node ./notify
	cd docs/node && npm ci --no-audit --no-fund
	$(go_test) -tags sdks -v -run TypeScript ./cmd/purser

# These figures depend on how much of the machine the tests get, so they are no part
# of `make test`, which holds the mechanisms behind them.
.PHONY: chaos
chaos: postgres ## Attack a server and measure memory, fairness and latency; on an idle machine
	$(GO) test -tags chaos -count=1 -timeout 30m -vet=off -p 1 -v -run '^TestChaos' ./store ./cmd/purser

# PURSER_STORM_NOTIFICATIONS=2000 makes it short.
.PHONY: webhooks
webhooks: postgres ## Send 100,000 notifications to receivers that fail in every way, from nodes that are killed
	$(GO) test -tags chaos -count=1 -timeout 180m -vet=off -v -run '^TestChaosWebhooks$$' ./notify/delivery

.PHONY: attack
attack: postgres ## Attack a server as an anonymous client and measure memory, latency and server errors; on an idle machine
	$(GO) test -tags chaos -count=1 -timeout 60m -vet=off -p 1 -v -run '^(TestAttack.*|TestChaosHalfSentBodies|TestChaosLogins)$$' ./cmd/purser

# The generators come from their registries. `make test` holds the same rules by the
# document's structure.
.PHONY: clients
clients: node ## Generate clients from the OpenAPI document with three generators and compile them
	@mkdir -p bin/clients
	cd $(CLIENTS) && $(GO) run . > "$(CURDIR)/bin/clients/openapi.json"
	cd $(CLIENTS) && $(GO) tool oapi-codegen -generate types,client -package golang -o golang/purser.gen.go "$(CURDIR)/bin/clients/openapi.json"
	cd $(CLIENTS) && $(GO) test -count=1 ./...
	cd $(CLIENTS)/typescript && npm ci --no-audit --no-fund && npm run --silent generate && npm run --silent check
	@echo "clients: oapi-codegen, openapi-typescript and hey-api compile"

# Ordinary tests that are about one Postgres. TestCitus has its own of some.
# - What stands in its catalog, plans and dumps.
ON_ONE_POSTGRES := TestExpectedGrantsAreThoseOfAMigratedDatabase TestPlansOfTheHotPathUseTheWholeKey TestPlansOfTheSandboxUseItsIndexes \
	TestARestoredDumpServesBehindItsWalls TestReportsReadLittle TestUsageReadsAreBounded TestRowLevelSecurity \
	TestTheSchemaIsAsRecorded TestTheSchemaCheckFinds
# - Rows written past the store by statements over all applications.
ON_ONE_POSTGRES += TestSealsOfRenamedWallets TestVerifyNewReadsInProportionToWhatIsNew TestVerifySinceReadsInProportionToWhatIsNew \
	TestVerifyPairsPaymentsWithTheJournal TestVerifyComparesTermsByTheirMeaning TestVerifyInPagesOfOneRowFindsWhatItFindsAtOnce \
	TestVerifyAcceptsAPrunedFeed TestVerifyFindsEveryCorruption TestStrayApplicationsAreFoundInEveryTable TestLargestValuesAreThoseOfTheRows \
	TestALostWalletDoesNotComeBack TestANodeThatRemembersLostChangesReadsAgain
# - Packed events, which Citus does not have.
ON_ONE_POSTGRES += $(shell sed -n 's/^func \(Test[A-Za-z]*\).*/\1/p' store/packing*_test.go)
# - Two lanes of batches for one application, which has one on its worker; transaction
#   numbers of two applications, which lie on two workers.
ON_ONE_POSTGRES += TestBulkLanesRunAtTheSameTime TestBulkLanesTakeTurnsBesideSingleEvents TestARepeatedIDBelongsToTheFirstItemAcrossLanes \
	TestABatchOverTwoLanesIsQueuedWholeOrNotAtAll TestOverloadIsRefusedBeforeAnythingIsDone

.PHONY: citus
citus: postgres ## Run the tests of distributed tables, and the ordinary ones of store, API and payments, on the Citus cluster that CITUS_DSN names
	@[ -n "$$CITUS_DSN" ] || { echo "make: set CITUS_DSN to a superuser's address at the coordinator of a Citus cluster: see store/citus_test.go" >&2; exit 1; }
	$(GO) test -tags citus -count=1 -timeout 90m -vet=off -p 1 -skip "^($$(echo $(ON_ONE_POSTGRES) | tr ' ' '|'))$$" ./store ./api ./payments/cashier

.PHONY: race
race: postgres chromium python ## Test everything under the race detector, for a quarter of an hour
	$(say_unproven)
	$(raced) $(GO) test -count=1 -timeout 80m -race $(unproven) ./...

.PHONY: lint
lint: format ## Check format, and what vet and staticcheck find
	@$(GO) build -tags lint -o bin/lint ./cmd/lint
	GOGC=$(SHORT_LIVED) bin/lint -tags screenshots,citus,chaos ./...
	@cd $(FIDELITY) && GOGC=$(SHORT_LIVED) "$(CURDIR)/bin/lint" ./...
	@cd $(SDKS) && GOGC=$(SHORT_LIVED) "$(CURDIR)/bin/lint" -tags sdks ./...

.PHONY: format
format:
	@stray=$$(find . \( -path ./data -o -path ./bin -o -path ./.git \) -prune -o -name '*.go' -exec gofmt -l {} +) && \
	if [ -n "$$stray" ]; then printf 'not formatted with gofmt:\n%s\n' "$$stray" >&2; exit 1; fi

.PHONY: generate
generate: ## Format the templates and write their Go code
	$(GO) tool templ fmt -log-level warn views
	$(GO) tool templ generate -log-level warn -path views
	$(GO) tool templ generate -log-level warn -path payments/sandbox/pages

.PHONY: bench
bench: postgres build ## Run every benchmark, then the whole server under load; ARGS="--quick" adds arguments
	@for package in $$($(call packages_with,Benchmark)); do \
		$(GO) test -run '^$$' -bench . -benchmem "$$package" || exit 1; \
	done
	@$(GO) build -o bin/bench ./cmd/bench
	@exec bin/bench --purser bin/purser $(ARGS)

.PHONY: fuzz
fuzz: postgres ## Run every fuzz target for FUZZTIME (20s) each
	@for package in $$($(call packages_with,Fuzz)); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$package"/*_test.go); do \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; \
		done; \
	done

.PHONY: mutants
mutants: postgres ## Seed known bugs, each by itself, and see that the tests catch it; ARGS="-only lock" chooses
	@$(GO) run ./cmd/mutants $(ARGS)

.PHONY: screenshots
screenshots: postgres chromium ## Take pictures of the pages into bin/screenshots, and those that the README shows into docs/images
	@PURSER_SCREENSHOTS="$(CURDIR)/bin/screenshots" $(GO) test -tags screenshots -count=1 -timeout 10m -run '^TestPictures$$' ./cmd/purser
	@for shown in docs/images/*.png; do cp "bin/screenshots/$${shown##*/}" "$$shown"; done

# As the server finds it: DATABASE_URL, or the embedded database while a server runs on it.
DATA = $(or $(PURSER_DATA),data)

.PHONY: psql
psql: ## Open psql on the server's database; PURSER_DATA=./data/demo chooses another folder
	@if [ -n "$$DATABASE_URL" ]; then exec psql "$$DATABASE_URL"; fi; \
	home=$$(cat "$(DATA)/postgres.location" 2>/dev/null || echo "$(DATA)/postgres"); \
	socket=$$(readlink -f "$$home/socket"); \
	if [ ! -S "$$socket/.s.PGSQL.5432" ]; then \
		echo "No database runs in $(DATA): start the server with make run, in another terminal." >&2; exit 1; \
	fi; \
	exec psql --host="$$socket" --username=postgres postgres

# What the image has: the static binary, CA certificates, and an account that can write
# nowhere. Time zones are in the binary.
ROOTFS ?= bin/rootfs
CERTIFICATES ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))

.PHONY: rootfs
rootfs:
	@[ -n "$(CERTIFICATES)" ] || { echo "The image needs CA certificates: apt-get install ca-certificates, or set CERTIFICATES to a file." >&2; exit 1; }
	@rm -rf "$(ROOTFS)"
	@install -d -m 0755 "$(ROOTFS)" "$(ROOTFS)/etc/ssl/certs" "$(ROOTFS)/usr/bin"
	@CGO_ENABLED=0 GOOS=linux $(GO) build -ldflags '-s -w $(STAMP)' -o "$(ROOTFS)/usr/bin/purser" ./cmd/purser
	@install -d -m 0755 "$(ROOTFS)/usr" "$(ROOTFS)/usr/share" "$(ROOTFS)/usr/share/doc" "$(ROOTFS)/usr/share/doc/purser"
	@install -m 0644 LICENSE "$(ROOTFS)/usr/share/doc/purser/LICENSE"
	@$(GO) run ./cmd/release -notices "$(ROOTFS)/usr/bin/purser" > "$(ROOTFS)/usr/share/doc/purser/THIRD-PARTY-NOTICES.txt"
	@chmod 0644 "$(ROOTFS)/usr/share/doc/purser/THIRD-PARTY-NOTICES.txt"
	@install -m 0644 "$(CERTIFICATES)" "$(ROOTFS)/etc/ssl/certs/ca-certificates.crt"
	@printf 'purser:x:65532:65532:Purser:/:/sbin/nologin\n' > "$(ROOTFS)/etc/passwd"
	@printf 'purser:x:65532:\n' > "$(ROOTFS)/etc/group"
	@chmod 0644 "$(ROOTFS)/etc/passwd" "$(ROOTFS)/etc/group" && chmod 0755 "$(ROOTFS)/usr/bin/purser"

# Images in Docker's format: the OCI's has no health check. Set BUILDER=docker where there
# are several programs: each has its own storage.
IMAGE ?= localhost/purser
BUILDER ?= $(firstword $(foreach program,podman buildah docker,$(if $(shell command -v $(program) 2>/dev/null),$(program))))
.PHONY: image
image: rootfs ## Build the container image IMAGE (localhost/purser) with podman, buildah or docker; BUILDER=docker chooses one
	@[ -n "$(BUILDER)" ] || { echo "Building an image needs podman, buildah or docker: apt-get install podman" >&2; exit 1; }
	$(BUILDER) build $(if $(filter docker,$(notdir $(lastword $(BUILDER)))),,--format docker )--file deploy/Dockerfile --tag "$(IMAGE):$(VERSION)" --tag "$(IMAGE):latest" "$(ROOTFS)"

.PHONY: release
release: ## Build bin/release: archives for four platforms, checksums, bill of materials, notices
	@$(GO) run ./cmd/release -version '$(VERSION)' -commit '$(COMMIT)' -built '$(BUILT)' $(ARGS)

.PHONY: clean
clean: ## Remove what was built; ./data stays
	@rm -rf bin

# The folders whose tests have a function with this beginning.
packages_with = find . \( -path ./data -o -path ./bin -o -path ./.git \) -prune -o -name '*_test.go' -exec grep -l '^func $(1)' {} + | xargs -r -n 1 dirname | sort -u

# Purser starts a Postgres of its own from the programs on the machine. Debian's
# package also starts a cluster, on port 5432: it is left alone, for ours
# listens on a socket in the data folder only.
install_postgres = apt-get update && apt-get install -y --no-install-recommends postgresql

.PHONY: postgres
postgres:
	@for programs in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin "$$(dirname "$$(command -v initdb)")"; do \
		if [ -x "$$programs/initdb" ] && [ -x "$$programs/postgres" ]; then exit 0; fi; \
	done; \
	if ! command -v apt-get >/dev/null; then \
		echo "Purser needs Postgres 15 or later: install it with your package manager, with initdb on the PATH." >&2; exit 1; \
	fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=""; \
	elif sudo -n true 2>/dev/null; then as_root="sudo -n"; \
	else \
		echo "Purser needs Postgres. Install it with this command, then run make again:" >&2; \
		echo "  sudo sh -c '$(install_postgres)'" >&2; exit 1; \
	fi; \
	echo "Installing Postgres…"; \
	$$as_root env DEBIAN_FRONTEND=noninteractive sh -c '$(install_postgres)'

# The pages are tested in a browser. They bring their own fonts, but Chromium does not
# start on a machine without any. Its sandbox is used where it works. The headless shell
# is Chromium without the parts that draw windows: the tests take a third less CPU time
# in it. Older Debians have no package of it.
install_chromium = apt-get update && apt-get install -y --no-install-recommends chromium-sandbox fonts-liberation \
	$$(apt-cache show chromium-headless-shell >/dev/null 2>&1 && echo chromium-headless-shell || echo chromium)

.PHONY: chromium
chromium:
	@for program in chromium-headless-shell chromium chromium-browser google-chrome; do \
		if command -v $$program >/dev/null; then exit 0; fi; \
	done; \
	if ! command -v apt-get >/dev/null; then \
		echo "The tests need Chromium: install it with your package manager, on the PATH." >&2; exit 1; \
	fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=""; \
	elif sudo -n true 2>/dev/null; then as_root="sudo -n"; \
	else \
		echo "The tests need Chromium. Install it with this command, then run make again:" >&2; \
		echo "  sudo sh -c '$(install_chromium)'" >&2; exit 1; \
	fi; \
	echo "Installing Chromium…"; \
	$$as_root env DEBIAN_FRONTEND=noninteractive sh -c '$(install_chromium)'

# The guides and the receivers of webhooks are run in Python too. Without it, which an
# ordinary user can't install, all other tests still run.
no_python = $(if $(shell command -v python3),,.*/^python$$)
install_python = apt-get update && apt-get install -y --no-install-recommends python3

.PHONY: python
python:
	@if command -v python3 >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
		echo "make: no Python 3 here, so the examples in Python are not run. Install it with your package manager, as python3 on the PATH." >&2; exit 0; \
	fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=""; \
	elif sudo -n true 2>/dev/null; then as_root="sudo -n"; \
	else \
		echo "make: no Python 3 here, so the examples in Python are not run. To run them, install it:" >&2; \
		echo "  sudo sh -c '$(install_python)'" >&2; exit 0; \
	fi; \
	echo "Installing Python…"; \
	$$as_root env DEBIAN_FRONTEND=noninteractive sh -c '$(install_python)'

.PHONY: node
node:
	@if command -v npm >/dev/null; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nodejs npm; \
	else \
		echo "The generators of TypeScript clients need Node.js 20 or later with npm: install it with your package manager." >&2; exit 1; \
	fi
