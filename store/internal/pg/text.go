package pg

// CutText shortens a text to a number of characters, with an ellipsis as the last, and
// removes what Postgres cannot store.
func CutText(text string, characters int) string {
	clean := make([]rune, 0, min(len(text), characters))
	for _, r := range text { // what is no UTF-8 comes as U+FFFD
		if r == 0 {
			continue
		}
		if len(clean) == characters {
			clean[characters-1] = '…'
			break
		}
		clean = append(clean, r)
	}
	return string(clean)
}
