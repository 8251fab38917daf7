package demo

import (
	"context"
	"net/http"
	"time"

	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
)

// hook is a webhook endpoint of the demo.
type hook struct {
	url, description string
	types            []string
	results          []attempt // of each of its deliveries; none for a paused one
}

// attempt is what a receiver answered.
type attempt struct {
	status int
	error  string
	answer string
	took   int // milliseconds
}

// hooks are an endpoint that works, one that fails, and one that is paused with
// notifications waiting.
var hooks = []hook{
	{"https://orders.lumen.example/purser", "Order system", []string{"topup.paid", "refund.applied", "dispute.opened", "dispute.closed"},
		[]attempt{{status: 200, answer: `{"ok":true}`, took: 48}}},
	{"https://warehouse.lumen.example/ingest", "Data warehouse", []string{"subscription.started", "subscription.updated", "subscription.renewed", "plan.sync_failed"},
		[]attempt{
			{status: 502, answer: "<html><head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center></body></html>\n", took: 1204},
			{error: "No complete answer within 15s.", took: 15_000},
			{status: 500, answer: `{"error":"relation \"ingest\" does not exist"}`, took: 87},
		}},
	{"https://crm.lumen.example/hooks", "CRM", nil, nil},
}

// watchBalances creates alert rules and webhook endpoints. The endpoints are paused, so that
// nothing is sent while the demo is made.
func (s *story) watchBalances(ctx context.Context) {
	s.numberNotifications(ctx)
	for key, rule := range map[string]object{
		"low-balance": {"kind": "balance", "creditKey": credits, "thresholdsNanocredits": []string{nano(20), nano(5)}},
		"key-account": {"kind": "balance", "creditKey": credits, "thresholdsNanocredits": []string{nano(500)}, "rearmPercent": 150, "quietHours": 72, "identity": "northwind"},
		"chat-usage":  {"kind": "allowance", "featureKey": chat, "thresholdsPercent": []int{80, 100}},
	} {
		s.backend.send(ctx, http.MethodPut, "/v1/alert-rules/"+key, rule, nil, http.StatusOK)
	}
	for _, h := range hooks {
		draft := object{"url": h.url, "description": h.description}
		if h.types != nil {
			draft["types"] = h.types
		}
		var made struct{ ID string }
		s.backend.post(ctx, "/v1/webhook-endpoints", draft, &made)
		s.backend.send(ctx, http.MethodPatch, "/v1/webhook-endpoints/"+made.ID, object{"status": "paused"}, nil, http.StatusOK)
	}
}

// numberNotifications does what a running server does by itself.
func (s *story) numberNotifications(ctx context.Context) {
	for numbered := 1; numbered > 0 && s.failed == nil; {
		s.do(func() (err error) {
			numbered, err = s.Store.Notifications(s.app.Scope()).Number(ctx, s.now)
			return err
		})
	}
}

// answerWebhooks enables the endpoints and records what their servers would have answered:
// they don't exist.
func (s *story) answerWebhooks(ctx context.Context) {
	s.numberNotifications(ctx)
	app := s.Store.Notifications(s.app.Scope())
	var endpoints []notify.Endpoint
	s.do(func() (err error) {
		endpoints, err = app.Endpoints(ctx)
		return err
	})
	for _, e := range endpoints {
		for _, h := range hooks {
			if h.url == e.URL && h.results != nil {
				s.backend.send(ctx, http.MethodPatch, "/v1/webhook-endpoints/"+e.ID.Format(ids.WebhookEndpoint), object{"status": "enabled"}, nil, http.StatusOK)
				s.do(func() error { return s.answer(ctx, app, e, h.results) })
			}
		}
	}
}

// maxAnswered is more than the deliveries of any of the demo's endpoints.
const maxAnswered = 500

func (s *story) answer(ctx context.Context, app notifications.App, e notify.Endpoint, results []attempt) error {
	due, err := app.DueDeliveries(ctx, e.ID, s.now+time.Hour.Milliseconds(), maxAnswered)
	if err != nil {
		return err
	}
	for _, d := range due {
		for i, r := range results {
			started := s.Now() - int64(len(results)-i)*5*time.Minute.Milliseconds()
			_, err := app.Finish(ctx, notifications.Attempt{
				ID: ids.New(), EndpointID: e.ID, NotificationID: d.ID, URL: e.URL, Status: r.status, Error: r.error, Answer: r.answer,
				StartedAt: started, TookMillis: r.took,
			}, notify.Result{Status: r.status}, s.now, uint64(started))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
