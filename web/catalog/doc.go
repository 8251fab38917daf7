// Package catalog has the pages of what an application sells: credits, features and plans,
// and the copy of a catalog to another application.
//
// What it is: Pages with its route table, and the readers of its forms.
//
// What always holds: a form with an old revision changes nothing and shows both versions;
// a field that was left as it was is not changed.
//
// What it is not: the rules of the fields. Packages metering and billing have them, for the
// API too.
package catalog
