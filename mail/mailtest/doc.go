// Package mailtest is an SMTP server for tests.
//
// What it is: a third-party SMTP server in the test process, with a certificate of its own,
// that keeps what it receives and refuses what a test tells it to.
//
// What always holds: mails are kept as they came and as a mail program decodes them.
//
// What it is not: imported by anything but tests.
package mailtest
