// Package browsertest opens pages in a real browser, for tests.
//
// What it is: one headless Chromium for a test process, with a tab for each test
// that shares no cookie with the others: tests use the same tabs in turn, and cookies
// are deleted in between. A tab visits, clicks, types and reads
// as a person does, and looks over a page with axe-core (4.14.0, as published on
// npm; its licence lies beside it).
//
// What always holds: a console error, a breach of the content security policy
// or a request that fails ends the test, wherever it happened; a machine without
// Chromium fails the test with the sentence that says what to install, and never
// skips it; nothing waits for a time, only for what should come.
//
// What it is not: imported by anything but tests.
package browsertest
