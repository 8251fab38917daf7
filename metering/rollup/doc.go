// Package rollup has the rules of usage statistics: which hour and which bucket an event
// belongs to, how sums are added, and up to where they are final.
//
// What it is: HourOf and Covered, what one event adds; Buckets, the hours, days or months
// of a time zone; Progress, the watermark below which no event can appear any more.
//
// What always holds: buckets follow each other without a gap; a bucket begins at a whole
// hour, so it is a sum of stored hours; the watermark never moves back.
//
// What it is not: storage. Package store/rollups reads events and adds them up.
package rollup
