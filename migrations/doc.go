// Package migrations is the schema, step by step, as SQL that is embedded in
// the binary.
//
// What it is: numbered files, applied in order and once each, every file in one
// transaction together with the record that it was applied.
//
// What always holds: files only go forward and are never changed once released;
// yesterday's binary runs on today's schema. A table that holds rows of an
// application has app_id first in its keys and its row-level policy in the same
// file. Statements are split one by one, as a distributed Postgres asks for. A migration that
// changes rows of usage_events changes packed_events in the same way.
//
// What it is not: a place for data. Ids and times are made in Go.
package migrations

import "embed"

// FS holds the migration files.
//
//go:embed *.sql
var FS embed.FS

// PackingFence is applied once, before events are packed for the first time. It is no
// migration: a database without packed events does without it.
//
//go:embed packing/fence.sql
var PackingFence string
