// Package monthly is the format of monthly files: the entries of an application in one
// month, and the balances of its wallets at the end of it.
//
// What it is: Month, Entry and Closing, which are lines of files; Account, which follows a
// wallet from one closing to the next; Manifest and Check, which hold a month to itself and
// to the month before.
//
// What always holds: an entry belongs to exactly one month. A wallet's part of a month
// begins after the last entry of the month before and ends before the first entry of a
// later month, so an entry that was committed late is in the next file instead of in none.
// The same entries make the same lines.
//
// What it is not: files on a disk, or rows of a database.
package monthly
