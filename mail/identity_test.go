package mail

import (
	"strings"
	"testing"

	"purser/notify"
)

// Customers choose their identities, so a mail must not make a link of one.
func TestAlertsMakeNoLinkOfAnIdentity(t *testing.T) {
	t.Parallel()
	for _, kind := range []notify.Type{notify.BalanceLow, notify.BalanceExhausted, notify.AllowanceThreshold} {
		l := noticePlace{base: "https://purser.example.com"}.letter(notify.Notification{Type: kind, Identity: "https://evil.example/now"})
		page, err := l.HTML(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string]string{"subject": l.SubjectLine(), "text": l.Text(), "page": page} {
			if strings.Contains(text, "https://evil") || strings.Contains(text, "evil.example") || !strings.Contains(text, "evil") {
				t.Errorf("%s: the %s is %s", kind, form, text)
			}
		}
	}
}
