package component

// CheckoutBadge shows the state of a checkout, which is open while it can be paid.
func CheckoutBadge(state string, open bool) Badge {
	if open {
		return Badge{Text: "Open", Tone: "accent"}
	}
	switch state {
	case "pending", "processing":
		return Badge{Text: "Payment pending", Tone: "warn"}
	case "applied", "paid":
		return Badge{Text: "Paid", Tone: "ok"}
	case "failed":
		return Badge{Text: "Failed", Tone: "danger"}
	case "set_aside":
		return Badge{Text: "Needs review", Tone: "danger"}
	case "expired":
		return Badge{Text: "Expired"}
	default:
		return Badge{Text: "Abandoned"}
	}
}
