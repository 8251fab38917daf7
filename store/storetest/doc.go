// Package storetest gives tests a real Postgres.
//
// What it is: one embedded cluster in the temporary folder, shared by all test
// processes of a user that run at the same time, with or without make. The first
// starts it; a process of its own ends and removes it some seconds after the last
// is gone. A migrated template database is created once for each set of migrations;
// tests get copies of it. Beside it is what keeps tests from depending on chance: seeds
// that can be repeated, the ends of days and hours, ports, programs that outlive a test.
//
// What always holds: a test process has a database that no other process sees;
// killing anything at any moment does not spoil the next run; a machine without
// Postgres fails the test with the sentence that says what to install, and never
// skips it.
//
// What it is not: imported by anything but tests. The tests of package store that
// use it are in package store_test, since it imports store itself.
package storetest
