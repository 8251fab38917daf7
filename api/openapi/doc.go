// Package openapi reads the OpenAPI document into a tree that keeps its order.
//
// What it is: the one reader and resolver of references for package api, which validates
// requests by the document and serves it, and package docs, which renders it.
//
// What always holds: members keep the order of the text; integers are int64; a reference
// that leads nowhere or in a circle is an error.
//
// What it is not: an implementation of the OpenAPI standard. Its users decide what they
// understand.
package openapi
