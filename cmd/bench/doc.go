// Command bench measures the hot path and the pages of Purser on the machine it runs on.
//
// What it is: one run that starts a Postgres of its own, the real server on it
// as it ships, and a load generator that sends HTTP requests; beside them pgbench on
// the same Postgres, for what the machine could do. It ends with a table of ratios, each
// with the floor it must not fall under and the target it should reach. Ratios are
// what to read: the plain rates say more of the machine than of Purser.
//
// What always holds: rounds of one measurement alternate with those of all
// others, so that noise hits each of them, and the median counts. Every response is
// checked, and an unexpected one fails the run. So does an accepted event that is not
// stored, or a balance that is not deposits minus charges. Nothing is left behind, not
// even on Ctrl-C.
//
// What it is not: a load generator for other servers, nor a way to tune Postgres:
// it runs with the settings that the embedded server ships.
package main
