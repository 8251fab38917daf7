package store

// Installation verifies what concerns all applications of a database, and knows when
// each is due.
type Installation struct {
	store *Store
}

// Installation is what the verification of all applications needs.
func (s *Store) Installation() Installation { return Installation{store: s} }
