// Package golang is the client that oapi-codegen generates, and tests of it. The
// client itself is not committed: `make clients` writes it.
package golang
