package payments

import (
	"encoding/json"
	"fmt"

	"purser/billing"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// storedAnswer is the response to a request as it was first given. A repeated request
// gets the same response, even when the subscription has changed since.
type storedAnswer struct {
	ID                string          `json:"id"`
	Identity          string          `json:"identity"`
	ProviderID        string          `json:"providerId,omitempty"`
	ConnectionID      string          `json:"connectionId,omitempty"`
	Status            string          `json:"status"`
	Begun             bool            `json:"begun"`
	Duplicate         bool            `json:"extra,omitempty"`
	PeriodStart       int64           `json:"periodStart"`
	PeriodEnd         int64           `json:"periodEnd"`
	Anchor            int64           `json:"anchor,omitempty"`
	Terms             json.RawMessage `json:"terms"`
	CancelAtPeriodEnd bool            `json:"cancelAtPeriodEnd"`
	Scheduled         json.RawMessage `json:"scheduled,omitempty"`
	Pending           json.RawMessage `json:"pending,omitempty"`
	CreatedAt         int64           `json:"createdAt"`
	EndedAt           int64           `json:"endedAt,omitempty"`
}

func encodeAnswer(s *billing.Subscription) ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	stored := storedAnswer{
		ID: s.ID.String(), Identity: s.Identity, ProviderID: s.ProviderID, Status: string(s.Status), Begun: s.Begun, Duplicate: s.Duplicate,
		PeriodStart: s.Period.Start, PeriodEnd: s.Period.End, Anchor: s.Anchor, CancelAtPeriodEnd: s.CancelAtPeriodEnd,
		CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
	}
	if !s.ConnectionID.IsZero() {
		stored.ConnectionID = s.ConnectionID.String()
	}
	var err error
	if stored.Terms, err = ledger.FreezeTerms(s.Terms); err != nil {
		return nil, err
	}
	if stored.Scheduled, err = encodeScheduled(s.Scheduled); err != nil {
		return nil, err
	}
	if stored.Pending, err = encodePending(s.Pending); err != nil {
		return nil, err
	}
	return json.Marshal(stored)
}

func decodeAnswer(text []byte) (*billing.Subscription, error) {
	if text == nil {
		return nil, nil
	}
	var stored storedAnswer
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("store: answer: %w", err)
	}
	id, err := pg.ParseUUID(stored.ID)
	if err != nil {
		return nil, fmt.Errorf("store: answer: %w", err)
	}
	s := &billing.Subscription{
		ID: id, Identity: stored.Identity, ProviderID: stored.ProviderID, Status: metering.SubscriptionStatus(stored.Status),
		Begun: stored.Begun, Duplicate: stored.Duplicate, Period: metering.Period{Start: stored.PeriodStart, End: stored.PeriodEnd},
		Anchor: stored.Anchor, CancelAtPeriodEnd: stored.CancelAtPeriodEnd, CreatedAt: stored.CreatedAt, EndedAt: stored.EndedAt,
	}
	if stored.ConnectionID != "" {
		if s.ConnectionID, err = pg.ParseUUID(stored.ConnectionID); err != nil {
			return nil, fmt.Errorf("store: answer: %w", err)
		}
	}
	if s.Terms, err = ledger.ThawTerms(stored.Terms); err != nil {
		return nil, err
	}
	if s.Scheduled, err = decodeScheduled(stored.Scheduled); err != nil {
		return nil, err
	}
	s.Pending, err = decodePending(stored.Pending)
	return s, err
}
