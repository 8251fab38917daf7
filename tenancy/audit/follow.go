package audit

import (
	"fmt"

	"purser/ids"
)

// Chain follows the entries of one organization from the first to the last. Its
// zero value with an organization is at the beginning.
type Chain struct {
	OrgID ids.ID
	at    Head
}

// Follow takes the next entry. It says what is wrong with it, or nothing; after a
// difference it goes on from what the entry claims, so that one change is one
// finding.
func (c *Chain) Follow(e Entry) (difference string) {
	switch {
	case e.Number != c.at.Number+1:
		difference = fmt.Sprintf("entry %d follows entry %d", e.Number, c.at.Number)
	case e.OrgID != c.OrgID:
		difference = fmt.Sprintf("entry %d is of another organization", e.Number)
	case e.seal(c.at.Seal) != e.Seal:
		difference = fmt.Sprintf("entry %d does not bear its seal", e.Number)
	}
	c.at = e.Head()
	return difference
}

// End compares where the entries end with the head that was kept.
func (c *Chain) End(head Head) (difference string) {
	if c.at != head {
		return fmt.Sprintf("the entries end with %d, and the head says %d", c.at.Number, head.Number)
	}
	return ""
}
