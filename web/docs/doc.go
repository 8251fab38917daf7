// Package docs serves the documentation: guides, the API reference, error codes, the
// search, and the same as text for programs.
//
// What it is: Pages with its route table.
//
// What always holds: everyone may read all of it; examples name this server.
//
// What it is not: the texts, which the package docs at the module's root embeds and reads.
package docs
