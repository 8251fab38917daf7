// Package persist is the stored form of the payments sandbox: rows with index
// columns, and the operations that a storage offers on them.
//
// What it is: data types and one interface, shared by the sandbox, which decides
// what a row means, and the store, which keeps rows and knows nothing of Stripe.
//
// What always holds: a row belongs to one application; its key is unique there; its
// references name the rows that are read together with it.
//
// What it is not: a decision about payments, or SQL.
package persist
