package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
)

const (
	// maxWait is how long a request for the feed waits for a notification.
	maxWait = 25 * time.Second
	// maxWaiting is how many requests of an application wait for notifications on a node,
	// which has twice as many for all. Others are answered at once.
	maxWaiting = 1024
	// maxAttempts is how many attempts of a notification are listed.
	maxAttempts = 100
)

type feedReply struct {
	Data      []notify.Body `json:"data"`
	NextAfter int64         `json:"nextAfter"`
	More      bool          `json:"more"`
	Oldest    int64         `json:"oldest"`
	Last      int64         `json:"last"`
}

type attemptReply struct {
	ID               string  `json:"id"`
	EndpointID       string  `json:"endpointId"`
	URL              string  `json:"url"`
	Status           *int    `json:"status"`
	Error            *string `json:"error"`
	Answer           string  `json:"answer"`
	StartedAt        int64   `json:"startedAt"`
	TookMilliseconds int     `json:"tookMilliseconds"`
}

type attemptListReply struct {
	Data []attemptReply `json:"data"`
}

func showAttempt(a notifications.Attempt) attemptReply {
	return attemptReply{
		ID: a.ID.Format(ids.DeliveryAttempt), EndpointID: a.EndpointID.Format(ids.WebhookEndpoint), URL: a.URL,
		Status: orNull(a.Status), Error: orNull(a.Error), Answer: a.Answer, StartedAt: a.StartedAt, TookMilliseconds: a.TookMillis,
	}
}

func (s *Server) listNotifications(c *call) (reply, error) {
	q := notifications.Query{After: -1, Identity: c.query.Text("identity"), Limit: int(c.query.Int("limit"))}
	if c.query.Has("after") {
		q.After = c.query.Int("after")
	}
	if c.query.Has("types") {
		for name := range strings.SplitSeq(c.query.Text("types"), ",") {
			q.Types = append(q.Types, notify.Type(name))
		}
		types, err := notify.CheckTypes(q.Types)
		if err != nil {
			return reply{}, err
		}
		q.Types = types
	}
	var page notifications.Page
	read := func(ctx context.Context) (found bool, err error) {
		page, err = s.store.Notifications(c.scope).Feed(ctx, q)
		return len(page.Notifications) > 0 || page.More, err
	}
	found, err := read(c.ctx)
	wait := time.Duration(c.query.Int("wait")) * time.Second
	if err == nil && !found && wait > 0 {
		err = s.waitForFeed(c, wait, read)
	}
	if err != nil {
		return reply{}, err
	}
	return ok(feedReply{
		Data:      showAll(page.Notifications, func(n notify.Notification) notify.Body { return n.Body(c.key.Live) }),
		NextAfter: page.NextAfter, More: page.More, Oldest: page.Oldest, Last: page.Last,
	}), nil
}

// waitForFeed waits for a notification. When too many requests wait, it returns at once. A
// key that was revoked meanwhile is refused.
func (s *Server) waitForFeed(c *call, wait time.Duration, read func(context.Context) (bool, error)) error {
	if s.waiting.Enter(c.scope, 1) != nil {
		return nil
	}
	defer s.waiting.Leave(c.scope, 1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), wait+requestTimeout)
	defer cancel()
	if err := s.deliveries.Wait(ctx, c.scope, min(wait, maxWait), s.stopped, read); err != nil {
		return err
	}
	return s.authenticateAgain(ctx, c)
}

// StopWaiting answers the requests that wait for notifications, and those that would, and
// cuts exports off: the server stops.
func (s *Server) StopWaiting() { s.stopOnce.Do(func() { close(s.stopped) }) }

func (s *Server) isStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

func (s *Server) getNotification(c *call, id ids.ID) (reply, error) {
	n, err := s.store.Notifications(c.scope).Notification(c.ctx, id)
	return okOr(n.Body(c.key.Live), err)
}

func (s *Server) listDeliveryAttempts(c *call, id ids.ID) (reply, error) {
	list, err := s.store.Notifications(c.scope).Attempts(c.ctx, id, maxAttempts)
	return okOr(attemptListReply{showAll(list, showAttempt)}, err)
}

func (s *Server) redeliverNotification(c *call, id ids.ID) (reply, error) {
	var endpoint ids.ID
	if c.body.Has("endpointId") {
		var err error
		if endpoint, err = ids.Parse(ids.WebhookEndpoint, c.body.Text("endpointId")); err != nil || endpoint.IsZero() {
			return reply{}, fault.New(fault.WebhookEndpointNotFound)
		}
	}
	queued, err := s.notifications(c).Redeliver(c.ctx, id, endpoint, c.now)
	return reply{status: http.StatusAccepted, body: queuedReply{queued}}, err
}
