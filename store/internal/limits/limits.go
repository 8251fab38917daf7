package limits

import "time"

// Session limits the sessions that serve requests. A statement or a lock that takes
// longer is stuck: the caller has given up, and its transaction must not hold wallets.
type Session struct {
	Statement time.Duration
	Lock      time.Duration
	Idle      time.Duration // in a transaction, between two statements
	Connect   time.Duration // a new connection, and a measurement of the clock on it
	Prepare   time.Duration // all statements of a new connection
}

var current = Session{Statement: 5 * time.Second, Lock: 2 * time.Second, Idle: 2 * time.Second, Connect: 5 * time.Second, Prepare: 5 * time.Second}

// Current is what stores are opened with.
func Current() Session { return current }

// Relax raises the limits for a test process: what a busy machine cannot do in five
// seconds is not stuck. It must be called before the first store is opened.
func Relax() {
	current = Session{Statement: 2 * time.Minute, Lock: time.Minute, Idle: 2 * time.Minute, Connect: 30 * time.Second, Prepare: 30 * time.Second}
}
