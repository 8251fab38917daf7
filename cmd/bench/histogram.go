package main

import (
	"math/bits"
	"time"
)

// Latencies are counted in buckets that grow with their value: sixteen to every
// doubling, so that a quantile is at most a sixteenth off.
const (
	bucketBits = 4
	perOctave  = 1 << bucketBits
	buckets    = (64 - bucketBits) * perOctave
)

type histogram struct {
	counts [buckets]uint64
	total  uint64
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(uint64(max(d, 0)))]++
	h.total++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile is the middle of the bucket under which the share q of all values lies.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		seen += n
		if n > 0 && seen > rank {
			low, high := bucketStart(i), bucketStart(i+1)
			return time.Duration(low + (high-low)/2)
		}
	}
	return 0
}

// bucketOf counts values below perOctave one by one; above, the highest set bits
// tell the bucket.
func bucketOf(v uint64) int {
	if v < perOctave {
		return int(v)
	}
	shift := bits.Len64(v) - bucketBits - 1
	return min(shift*perOctave+int(v>>shift), buckets-1)
}

func bucketStart(i int) uint64 {
	if i < 2*perOctave {
		return uint64(i)
	}
	shift := i/perOctave - 1
	return uint64(i-shift*perOctave) << shift
}
