package notify

// MaxHourlyMails is how many mails about alerts a person gets in an hour, and how many
// about other notifications. One more of each says that the rest is in the dashboard.
const MaxHourlyMails = 10

// MailBudget decides how many of the wanted mails are sent after those of this hour, and
// whether a mail about the rest is.
func MailBudget(sent, wanted int) (send int, rest bool) {
	send = min(max(MaxHourlyMails-sent, 0), wanted)
	return send, sent <= MaxHourlyMails && sent+wanted > MaxHourlyMails
}
