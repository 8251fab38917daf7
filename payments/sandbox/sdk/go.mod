module purser/payments/sandbox/sdk

go 1.26.0

replace purser => ../../..

require (
	github.com/stripe/stripe-go/v85 v85.0.0
	purser v0.0.0-00010101000000-000000000000
)

require (
	github.com/a-h/templ v0.3.977 // indirect
	github.com/alecthomas/chroma/v2 v2.27.0 // indirect
	github.com/dlclark/regexp2/v2 v2.2.1 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/yuin/goldmark v1.8.7 // indirect
	golang.org/x/sync v0.24.0 // indirect
)
