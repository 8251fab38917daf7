package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"purser/ids"
)

// Body is a notification as other systems get it: in the feed, and by webhook with
// PreviousSeq.
type Body struct {
	ID          string          `json:"id"`
	Seq         int64           `json:"seq"`
	PreviousSeq *int64          `json:"previousSeq,omitempty"`
	Type        Type            `json:"type"`
	Timestamp   string          `json:"timestamp"`
	CreatedAt   int64           `json:"createdAt"`
	Live        bool            `json:"live"`
	Test        bool            `json:"test,omitempty"`
	Identity    string          `json:"identity,omitempty"`
	Data        json.RawMessage `json:"data"`
}

// Body is the form that other systems get.
func (n Notification) Body(live bool) Body {
	return Body{
		ID:        n.ID.Format(ids.Notification),
		Seq:       n.Seq,
		Type:      n.Type,
		Timestamp: time.UnixMilli(n.CreatedAt).UTC().Format("2006-01-02T15:04:05.000Z"),
		CreatedAt: n.CreatedAt,
		Live:      live,
		Test:      n.Test,
		Identity:  n.Identity,
		Data:      n.Data,
	}
}

// Message is the body of a webhook: previous is the number of the notification before it
// for the same endpoint.
func (n Notification) Message(live bool, previous int64) ([]byte, error) {
	body := n.Body(live)
	body.PreviousSeq = &previous
	message, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	return message, nil
}
