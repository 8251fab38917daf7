// Package deploy holds the files to run Purser with: the image, a compose file, a systemd
// unit, a Helm chart, a Grafana dashboard and Prometheus alert rules.
//
// What it is: files for operators, and the tests that try them. The chart is tested in
// charttest, a module of its own, whose dependencies are none of ours.
//
// What always holds: the image has no shell, no package and nothing that its user can
// write; every file names settings that the server knows.
//
// What it is not: code that the server uses.
package deploy
