// Package charttest renders the Helm chart as Helm does, and holds the result to the types
// of Kubernetes and of the Prometheus operator.
//
// What it is: tests, in a module of their own: the server needs none of these libraries.
//
// What always holds: every object decodes without an unknown field.
//
// What it is not: a cluster. Nothing is applied.
package charttest
