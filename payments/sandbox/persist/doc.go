// Package persist is the stored form of the payments sandbox: rows with index
// columns, and the operations that a storage offers on them.
//
// What it is: data types and one interface, shared by the sandbox, which interprets
// rows, and the store, which stores them without knowing Stripe.
//
// What always holds: a row belongs to one application; its key is unique there; its
// references name the rows that are read together with it.
//
// What it is not: payment rules or SQL.
package persist
