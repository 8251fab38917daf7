package sandbox

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

var RedirectTime = redirectTime
