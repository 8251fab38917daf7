// Package credential has the ways in which people prove who they are: passwords, one-time
// codes, recovery codes and links.
//
// What it is: rules for choosing a password, its hash, one-time codes after RFC
// 6238, and links that are kept as hashes. Randomness and time come in as
// arguments.
//
// What always holds: no stored value authenticates by itself, except the
// authenticator's seed, which has to be encrypted; comparisons take constant
// time; a hash names its own parameters, so they can rise.
//
// What it is not: a sign-in. How often one may try, and what happens then, is
// decided at the dashboard's edge.
package credential
