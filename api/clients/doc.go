// Command clients prints the OpenAPI document as it is served, for generators of
// clients. It is a module of its own, so that the product does not depend on the
// generators.
//
// What it is: the judge of the document. `make clients` generates a client with
// oapi-codegen, openapi-typescript and hey-api, with their defaults, and compiles the
// smallest bodies that the document allows against each.
//
// What it is not: part of `make test`, which holds the same rules by the document's
// structure. The generators come from their registries and take a minute.
package main
