package sandbox

// WaitForSenders returns when no webhook to another program is being sent.
func (s *Server) WaitForSenders() { s.sending.Wait() }

// OccupySenders leaves no sender free until leave is called.
func (s *Server) OccupySenders() (leave func()) {
	var all []func()
	for done, free := s.senders.enter(); free; done, free = s.senders.enter() {
		all = append(all, done)
	}
	return func() {
		for _, done := range all {
			done()
		}
	}
}
