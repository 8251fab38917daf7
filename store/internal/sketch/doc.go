// Package sketch counts different ids in a few kilobytes.
//
// What it is: Sketch, which is exact while it is small and a HyperLogLog past that.
//
// What always holds: two sketches that are merged count no id twice, and a stored one
// reads as the same count.
//
// What it is not: a list. No id can be read from it.
package sketch
