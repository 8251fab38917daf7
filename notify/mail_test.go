package notify_test

import (
	"testing"

	"pgregory.net/rapid"

	"purser/notify"
)

// However notifications come, a person gets at most ten mails and one about the rest,
// which comes exactly when there is a rest.
func TestMailsOfAnHourAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sent, mails, rests, wanted := 0, 0, 0, 0
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 30)).Draw(t, "notifications") {
			send, rest := notify.MailBudget(sent, n)
			mails, wanted, sent = mails+send, wanted+n, sent+n
			if rest {
				rests++
			}
		}
		if mails != min(wanted, notify.MaxHourlyMails) || (rests == 1) != (wanted > notify.MaxHourlyMails) || rests > 1 {
			t.Fatalf("of %d notifications %d were mailed, and %d mails say that there are more", wanted, mails, rests)
		}
	})
}
