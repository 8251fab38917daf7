package pg

// CutText truncates a text and removes what Postgres cannot store.
func CutText(text string, characters int) string {
	clean := make([]rune, 0, min(len(text), characters))
	for _, r := range text { // what is no UTF-8 comes as U+FFFD
		if len(clean) == characters {
			break
		}
		if r != 0 {
			clean = append(clean, r)
		}
	}
	return string(clean)
}
