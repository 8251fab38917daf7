package people

// RosterQuery is for a test of its plan.
const RosterQuery = rosterQuery
