package browsertest

import (
	"strings"
	"testing"

	"purser/ids"
	"purser/notify"
	"purser/views/layout"
	notifypage "purser/views/page/notifications"
)

// While a delivery waits, its part of the page is loaded again every two seconds. An
// attempt that is being read stays open, with the focus.
func TestAnAttemptStaysOpenWhileADeliveryWaits(t *testing.T) {
	t.Parallel()
	page := notifypage.NotificationDetail{
		Frame: layout.Frame{Title: "Notification", Current: "notifications", Person: layout.Person{Name: "Ann Example", Email: "ann@example.com"}},
		List:  "/notifications", Path: "/notification", Waits: true, Data: "{}",
		Notification: notify.Notification{ID: ids.New(), Type: notify.DepositCreated, Seq: 1},
		Sent: []notifypage.SentDelivery{{
			DeliveryRow: notifypage.DeliveryRow{EndpointID: ids.New(), Status: notify.Pending, Attempts: 1},
			Endpoint:    notify.Endpoint{ID: ids.New(), URL: "https://example.com/webhooks", Status: notify.Enabled}, EndpointHref: "/endpoint",
			Tries: []notifypage.AttemptShown{{ID: "dat_1", URL: "https://example.com/webhooks", Status: 500, Answer: "no", Body: "{}"}},
		}, {
			DeliveryRow: notifypage.DeliveryRow{EndpointID: ids.New(), Status: notify.Pending},
			Endpoint:    notify.Endpoint{ID: ids.New(), URL: "https://example.com/failing", Status: notify.Enabled, FailingSince: 1},
		}},
	}
	tab := Open(t, Desktop)
	tab.Visit(serve(t, map[string]view{"/notification": notifypage.NotificationPage(page)}) + "/notification")
	if text := tab.Text("#deliveries"); !strings.Contains(text, "Waiting to be sent") || strings.Contains(text, "Sending now") {
		t.Errorf("it says %s", text)
	}
	// At once: the part may be replaced while a mouse button is pressed.
	tab.Evaluate(`(() => { const summary = document.querySelector(".attempt summary"); summary.click(); summary.focus() })()`)
	tab.Evaluate(`document.querySelector("#deliveries").dataset.seen = "yes"`)
	tab.WaitGone("#deliveries[data-seen]")
	if open := tab.Evaluate(`document.querySelector(".attempt").open`); open != "true" {
		t.Error("the attempt is closed")
	}
	if focused := tab.Evaluate(`document.activeElement.matches(".attempt summary")`); focused != "true" {
		t.Error("the focus is lost")
	}
	tab.Focus("#deliveries h2 a")
	tab.Evaluate(`document.querySelector("#deliveries").dataset.seen = "yes"`)
	tab.WaitGone("#deliveries[data-seen]")
	tab.WaitFocus("#deliveries h2 a")
}
