package store_test

// commitFault is what happens to a connection at a COMMIT.
type commitFault int

const (
	noFault      commitFault = iota
	beforeCommit             // the connection ends, and the COMMIT never reached the server
	afterCommit              // the server has committed; the connection ends before it can say so
	midRow                   // the connection ends inside the next row that the server sends on it
	blackHole                // the COMMIT goes out, then nothing passes any more; the connection stays
)

func (f commitFault) String() string {
	return [...]string{"none", "before commit", "after commit", "mid-row", "black hole"}[f]
}

// faultPlan decides what happens at the n-th COMMIT since it was made, the first being
// 1. It is never called twice at once.
type faultPlan func(n int) commitFault

// Plan replaces the plan and restarts its count.
func (p *faultProxy) Plan(plan faultPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.commits = plan, 0
}

// Struck is how often a fault has happened since the proxy was started.
func (p *faultProxy) Struck(f commitFault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck[f]
}

// Silence makes a black hole of the server until it is lifted: nothing passes on any
// connection, and new ones are accepted and never answered. A connection that met it
// stays silent.
func (p *faultProxy) Silence(on bool) { p.silence.Store(on) }

// Before runs something, once, when the next statement that contains the text is
// about to go out. The statement waits for it.
func (p *faultProxy) Before(text string, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = append(p.hooks, proxyHook{text, do})
}

type proxyHook struct {
	text string
	do   func()
}

func (p *faultProxy) nextFault() commitFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits++
	if p.plan == nil {
		return noFault
	}
	return p.plan(p.commits)
}

func (p *faultProxy) strike(f commitFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.struck[f]++
}
