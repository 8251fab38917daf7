package sandboxtest

import (
	"context"
	"encoding/json"

	"purser/ids"
	"purser/payments/sandbox/persist"
)

// accounts is the part of sandbox.Accounts that copies need.
type accounts interface {
	Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error
	View(ctx context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error
}

// Read reads a whole account, as the change that puts it back to what it is now.
func Read(ctx context.Context, from accounts, app ids.ID) (c persist.Change, err error) {
	err = from.View(ctx, app, persist.Want{}, func(s persist.Session) (err error) {
		var head struct{ Offset int64 }
		if err := json.Unmarshal(s.Head, &head); err != nil {
			return err
		}
		c = persist.Change{Head: s.Head, Replace: true, ClockOffset: head.Offset}
		c.Rows, err = s.Source.Everything()
		return err
	})
	return c, err
}

// Write stores a change, whatever is stored of the account.
func Write(ctx context.Context, to accounts, app ids.ID, c persist.Change) error {
	return to.Update(ctx, app, persist.Want{}, func(persist.Session) (persist.Change, error) { return c, nil })
}
