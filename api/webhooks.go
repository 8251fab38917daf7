package api

import (
	"net/http"
	"time"

	"purser/ids"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store/notifications"
)

type endpointReply struct {
	ID            string                `json:"id"`
	URL           string                `json:"url"`
	Types         []notify.Type         `json:"types"`
	Description   string                `json:"description"`
	Status        notify.EndpointStatus `json:"status"`
	PauseReason   *notify.PauseReason   `json:"pauseReason"`
	FailingSince  *int64                `json:"failingSince"`
	LastSuccessAt *int64                `json:"lastSuccessAt"`
	Revision      int64                 `json:"revision"`
	CreatedAt     int64                 `json:"createdAt"`
}

type endpointWithSecretReply struct {
	endpointReply
	Secret string `json:"secret"`
}

type endpointListReply struct {
	Data []endpointReply `json:"data"`
}

type deletedReply struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

type queuedReply struct {
	Queued int `json:"queued"`
}

type queuedTestReply struct {
	NotificationID string `json:"notificationId"`
}

func showEndpoint(e notify.Endpoint) endpointReply {
	types := e.Types
	if types == nil {
		types = []notify.Type{}
	}
	return endpointReply{
		ID: e.ID.Format(ids.WebhookEndpoint), URL: e.URL, Types: types, Description: e.Description, Status: e.Status,
		PauseReason: orNull(e.PauseReason), FailingSince: orNull(e.FailingSince), LastSuccessAt: orNull(e.SucceededAt),
		Revision: e.Revision, CreatedAt: e.CreatedAt,
	}
}

// orNull is null for the zero value.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

func (s *Server) notifications(c *call) notifications.App {
	return s.store.Notifications(c.scope).By(s.actor(c))
}

func readTypes(in input) []notify.Type {
	items := field[[]any](in, "types")
	types := make([]notify.Type, len(items))
	for i, item := range items {
		types[i] = notify.Type(item.(string))
	}
	return types
}

func (s *Server) createWebhookEndpoint(c *call) (reply, error) {
	e, secret, err := s.deliveries.Create(c.ctx, c.scope, s.actor(c), delivery.Draft{
		URL: c.body.Text("url"), Types: readTypes(c.body), Description: c.body.Text("description"), Live: c.key.Live, Now: c.now,
	})
	return createdOr(endpointWithSecretReply{showEndpoint(e), secret.Reveal()}, err)
}

func (s *Server) listWebhookEndpoints(c *call) (reply, error) {
	list, err := s.store.Notifications(c.scope).Endpoints(c.ctx)
	return okOr(endpointListReply{showAll(list, showEndpoint)}, err)
}

func (s *Server) getWebhookEndpoint(c *call, id ids.ID) (reply, error) {
	e, err := s.store.Notifications(c.scope).Endpoint(c.ctx, id)
	return okOr(showEndpoint(e), err)
}

func (s *Server) updateWebhookEndpoint(c *call, id ids.ID) (reply, error) {
	patch := notify.EndpointPatch{
		ExpectedRevision: c.body.OptionalInt("expectedRevision"),
		URL:              c.body.OptionalText("url"),
		Description:      c.body.OptionalText("description"),
		Status:           (*notify.EndpointStatus)(c.body.OptionalText("status")),
	}
	if c.body.Has("types") {
		types := readTypes(c.body)
		patch.Types = &types
	}
	e, err := s.notifications(c).UpdateEndpoint(c.ctx, id, patch, c.key.Live)
	return okOr(showEndpoint(e), err)
}

func (s *Server) deleteWebhookEndpoint(c *call, id ids.ID) (reply, error) {
	return okOr(deletedReply{id.Format(ids.WebhookEndpoint), true}, s.notifications(c).DeleteEndpoint(c.ctx, id))
}

func (s *Server) rotateWebhookSecret(c *call, id ids.ID) (reply, error) {
	var revision int64 // zero for any
	if c.body.Has("expectedRevision") {
		revision = c.body.Int("expectedRevision")
	}
	overlap := int64(notify.DefaultOverlap)
	if c.body.Has("overlapSeconds") {
		overlap = c.body.Int("overlapSeconds")
	}
	e, secret, err := s.deliveries.Rotate(c.ctx, c.scope, s.actor(c), id, revision, time.Duration(overlap)*time.Second)
	return okOr(endpointWithSecretReply{showEndpoint(e), secret.Reveal()}, err)
}

func (s *Server) testWebhookEndpoint(c *call, id ids.ID) (reply, error) {
	n, err := s.deliveries.Test(c.ctx, c.scope, s.actor(c), id, notify.Type(c.body.Text("type")), c.now)
	return reply{status: http.StatusAccepted, body: queuedTestReply{n.ID.Format(ids.Notification)}}, err
}

func (s *Server) replayWebhooks(c *call, id ids.ID) (reply, error) {
	if c.body.Has("toSeq") && c.body.Int("toSeq") < c.body.Int("fromSeq") {
		return reply{}, invalid("The field toSeq must not be below fromSeq.")
	}
	queued, err := s.notifications(c).Replay(c.ctx, notifications.Replay{
		EndpointID: id, From: c.body.Int("fromSeq"), To: c.body.Int("toSeq"), OnlyFailed: c.body.Text("only") == "failed", Now: c.now,
	})
	return reply{status: http.StatusAccepted, body: queuedReply{queued}}, err
}
