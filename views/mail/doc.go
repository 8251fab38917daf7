// Package mail renders mails: one Letter, as HTML and as plain text.
//
// What always holds: both forms say the same, names in them cannot become links or
// header lines, and nothing is loaded from elsewhere: no image, no font, no script.
//
// What it is not: delivery. That is package mail at the root.
package mail
