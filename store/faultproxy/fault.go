package faultproxy

// Fault is what happens to a connection at a COMMIT.
type Fault int

const (
	None         Fault = iota
	BeforeCommit       // the connection ends, and the COMMIT never reached the server
	AfterCommit        // the server has committed; the connection ends before it can say so
	MidRow             // the connection ends inside the next row that the server sends on it
	BlackHole          // the COMMIT goes out, then nothing passes any more; the connection stays
)

func (f Fault) String() string {
	return [...]string{"none", "before commit", "after commit", "mid-row", "black hole"}[f]
}

// Plan decides what happens at the n-th COMMIT since it was made, the first being
// 1. It is never called twice at once.
type Plan func(n int) Fault

// Plan replaces the plan and restarts its count.
func (p *Proxy) Plan(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.commits = plan, 0
}

// Struck is how often a fault has happened since the proxy was started.
func (p *Proxy) Struck(f Fault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck[f]
}

// Silence makes a black hole of the server until it is lifted: nothing passes on any
// connection, and new ones are accepted and never answered. A connection that met it
// stays silent.
func (p *Proxy) Silence(on bool) { p.silence.Store(on) }

// Before runs something, once, when the next statement that contains the text is
// about to go out. The statement waits for it.
func (p *Proxy) Before(text string, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = append(p.hooks, hook{text, do})
}

type hook struct {
	text string
	do   func()
}

func (p *Proxy) nextFault() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits++
	if p.plan == nil {
		return None
	}
	return p.plan(p.commits)
}

func (p *Proxy) strike(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.struck[f]++
}
