package payments

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/queue"
	"purser/tenancy/audit"
)

// ConnectionMode is the kind of provider.
type ConnectionMode string

// An application is paid through a Stripe account or the built-in sandbox.
const (
	StripeConnection  ConnectionMode = "stripe"
	SandboxConnection ConnectionMode = "sandbox"
)

// SealedSecret is an encrypted secret.
type SealedSecret struct {
	Sealed []byte
	Until  int64 // when it expires; zero for never
}

// Connection is an application's account at the payment provider. Its secrets are
// encrypted before they get here.
type Connection struct {
	ID                  ids.ID
	Mode                ConnectionMode
	Live                bool // whether it moves real money
	AccountID           string
	SealedKey           []byte // empty when it can be derived again
	KeyLastFour         string
	EndpointID          string         // of the webhooks
	Secrets             []SealedSecret // webhook signing secrets, the current one first
	EventsAfter         int64          // cursor into the provider's list of events
	PortalConfiguration string         // empty until it is created
	CreatedAt           int64
	ChangedAt           int64
	ReplacedAt          int64 // zero for the current one
	// ClockOffset is how far the application's clock is ahead, as Connection,
	// ConnectionByID and LatestConnection have read it. It is not stored here.
	ClockOffset int64
}

const connectionColumns = `
	id, mode, live, account_id, api_key, api_key_last_four, endpoint_id, webhook_secrets, webhook_secrets_until,
	events_after, portal_configuration, created_at, changed_at, replaced_at`

var (
	selectConnection = pg.Declare("select connection", `
		SELECT`+connectionColumns+`
		FROM provider_connections WHERE app_id = $1 AND replaced_at IS NULL`)

	// With the offset of the application's clock.
	selectConnectionNow = pg.Declare("select connection with clock", `
		SELECT `+pg.Prefixed("c", connectionColumns)+`, s.clock_offset
		FROM provider_connections c JOIN app_state s ON s.app_id = $1
		WHERE c.app_id = $1 AND c.replaced_at IS NULL`)

	selectConnectionByID = pg.Declare("select connection by id", `
		SELECT `+pg.Prefixed("c", connectionColumns)+`, s.clock_offset
		FROM provider_connections c JOIN app_state s ON s.app_id = $1
		WHERE c.app_id = $1 AND c.id = $2`)

	// An account may have been connected and replaced more than once.
	selectLatestConnection = pg.Declare("select latest connection", `
		SELECT `+pg.Prefixed("c", connectionColumns)+`, s.clock_offset
		FROM provider_connections c JOIN app_state s ON s.app_id = $1
		WHERE c.app_id = $1 AND c.mode = $2 AND c.account_id = $3
		ORDER BY c.replaced_at DESC NULLS FIRST, c.id DESC LIMIT 1`)

	lockConnection = pg.Declare("lock connection", `
		SELECT`+connectionColumns+`
		FROM provider_connections WHERE app_id = $1 AND replaced_at IS NULL FOR NO KEY UPDATE`)

	// Keeps the connection from being replaced until the transaction ends:
	// lockConnection waits.
	holdConnection = pg.Declare("hold connection", `
		SELECT id FROM provider_connections WHERE app_id = $1 AND id = $2 AND replaced_at IS NULL FOR SHARE`)

	insertConnection = pg.Declare("insert connection", pg.Insert("provider_connections", "org_id,"+connectionColumns))

	updateConnection = pg.Declare("update connection", `
		UPDATE provider_connections SET live = @live, account_id = @account_id, api_key = @api_key, api_key_last_four = @api_key_last_four, endpoint_id = @endpoint_id,
			webhook_secrets = @webhook_secrets, webhook_secrets_until = @webhook_secrets_until, events_after = @events_after, portal_configuration = @portal_configuration, changed_at = @changed_at
		WHERE app_id = $1 AND id = @id`)

	retireConnection = pg.Declare("retire connection", `
		UPDATE provider_connections SET replaced_at = $3 WHERE app_id = $1 AND id = $2`)

	insertConnectionAddress = pg.Declare("insert connection address", `
		INSERT INTO connection_directory (app_id, org_id, connection_id) VALUES ($1, $2, $3)`)

	// An account that was connected again has things sold through each of its connections.
	countUsesOfAccount = pg.Declare("count uses of account", `
		SELECT (SELECT count(*) FROM provider_connections n JOIN subscriptions s ON s.app_id = $1 AND s.connection_id = n.id
				WHERE n.app_id = $1 AND n.mode = $2 AND n.account_id = $3 AND s.provider_id IS NOT NULL AND s.status <> 'canceled')
			+ (SELECT count(*) FROM provider_connections n JOIN topups t ON t.app_id = $1 AND t.connection_id = n.id
				WHERE n.app_id = $1 AND n.mode = $2 AND n.account_id = $3 AND t.status IN ('open', 'processing'))
			+ (SELECT count(*) FROM subscription_changes c WHERE c.app_id = $1 AND c.kind = 'checkout' AND c.state IN ('requested', 'pending'))`)

	countSubscriptionsAt = pg.Declare("count subscriptions at account", `
		SELECT count(*)
		FROM provider_connections c JOIN subscriptions s ON s.app_id = $1 AND s.connection_id = c.id
		WHERE c.app_id = $1 AND c.mode = $2 AND c.account_id = $3 AND s.provider_id IS NOT NULL AND (s.status <> 'canceled' OR s.ended_at >= $4)`)

	forgetPlansAtProvider = pg.Declare("forget plans at provider", `
		UPDATE plans SET product_id = NULL, price_id = NULL, sync_status = 'pending', sync_error = NULL, sync_version = sync_version + 1
		WHERE app_id = $1`)

	// A payment is at the account of its subscription or top-up.
	selectConnectionOf = pg.Declare("select connection of object", `
		SELECT s.connection_id FROM subscriptions s WHERE s.app_id = $1 AND s.provider_id = $2
		UNION ALL
		SELECT t.connection_id FROM topups t WHERE t.app_id = $1 AND t.session_id = $2
		UNION ALL
		SELECT s.connection_id
		FROM provider_payments p JOIN subscriptions s ON s.app_id = $1 AND s.id = p.subscription_id
		WHERE p.app_id = $1 AND p.charge_id = $2
		UNION ALL
		SELECT t.connection_id
		FROM provider_payments p JOIN topups t ON t.app_id = $1 AND t.session_id = p.source_id
		WHERE p.app_id = $1 AND p.charge_id = $2`)

	setEventsAfter = pg.Declare("set events after", `
		UPDATE provider_connections SET events_after = $3 WHERE app_id = $1 AND id = $2`)

	setPortalConfiguration = pg.Declare("set portal configuration", `
		UPDATE provider_connections SET portal_configuration = $3 WHERE app_id = $1 AND id = $2`)
)

func readConnection(row pgx.CollectableRow) (c Connection, err error) {
	err = c.scan(row)
	return c, err
}

// readConnectionNow also reads the offset of the application's clock.
func readConnectionNow(row pgx.CollectableRow) (c Connection, err error) {
	err = c.scan(row, &c.ClockOffset)
	return c, err
}

// scan reads the columns of a connection, and those after them.
func (c *Connection) scan(row pgx.CollectableRow, more ...any) error {
	var lastFour, endpoint, portal *string
	var secrets [][]byte
	var until []int64
	var replaced *int64
	err := row.Scan(append([]any{&c.ID, &c.Mode, &c.Live, &c.AccountID, &c.SealedKey, &lastFour, &endpoint, &secrets, &until,
		&c.EventsAfter, &portal, &c.CreatedAt, &c.ChangedAt, &replaced}, more...)...)
	c.KeyLastFour, c.EndpointID, c.PortalConfiguration = pg.OrZero(lastFour), pg.OrZero(endpoint), pg.OrZero(portal)
	c.ReplacedAt = pg.OrZero(replaced)
	for i := range secrets {
		c.Secrets = append(c.Secrets, SealedSecret{secrets[i], until[i]})
	}
	return err
}

// secrets are the columns of the webhook secrets.
func (c Connection) secrets() (sealed [][]byte, until []int64) {
	sealed, until = [][]byte{}, []int64{}
	for _, s := range c.Secrets {
		sealed, until = append(sealed, s.Sealed), append(until, s.Until)
	}
	return sealed, until
}

// Connection reads the application's current account.
func (a Accounts) Connection(ctx context.Context) (Connection, error) {
	return pg.FindOne(ctx, a.app, selectConnectionNow, readConnectionNow, fault.New(fault.PaymentsNotConfigured))
}

func (tx appTx) connection(ctx context.Context) (Connection, error) {
	return pg.Find(ctx, tx, selectConnection, readConnection, fault.New(fault.PaymentsNotConfigured))
}

// ConnectionByID reads an account, also a replaced one: its webhooks may still arrive.
func (a Accounts) ConnectionByID(ctx context.Context, id ids.ID) (Connection, error) {
	return pg.FindOne(ctx, a.app, selectConnectionByID, readConnectionNow, fault.New(fault.PathNotFound), id)
}

// ConnectionOf finds the account of a known subscription, top-up session or charge by
// its provider id.
func (a Accounts) ConnectionOf(ctx context.Context, object string) (ids.ID, error) {
	return pg.FindOne(ctx, a.app, selectConnectionOf, pgx.RowTo[ids.ID], ErrUnknown, object)
}

// LatestConnection reads the newest connection to the account of c: the current one, or
// the one that was replaced last.
func (a Accounts) LatestConnection(ctx context.Context, c Connection) (Connection, error) {
	return pg.FindOne(ctx, a.app, selectLatestConnection, readConnectionNow, fault.New(fault.PathNotFound), c.Mode, c.AccountID)
}

// SubscriptionsAt counts the subscriptions at the account of c that have not ended, or not
// before the time, whichever connection to it they were sold through.
func (a Accounts) SubscriptionsAt(ctx context.Context, c Connection, endedSince int64) (int, error) {
	return pg.FindOne(ctx, a.app, countSubscriptionsAt, pgx.RowTo[int], pg.ErrNoAppState, c.Mode, c.AccountID, endedSince)
}

// holdConnection locks an account against replacement while something is sold at it.
// Zero means no account.
func (tx appTx) holdConnection(ctx context.Context, id ids.ID) error {
	if id.IsZero() {
		return nil
	}
	replaced := fault.Newf(fault.OperationInProgress, "Another payment account is being connected. Try again.")
	_, err := pg.Find(ctx, tx, holdConnection, pgx.RowTo[ids.ID], replaced, id)
	return err
}

// PutConnection updates the current account when the id matches, and otherwise replaces
// it: then nothing may depend on the previous one, and every plan is synced to the new
// one. The sandbox does not replace itself: two nodes that connect it at once both get
// the first connection.
func (a Accounts) PutConnection(ctx context.Context, requested Connection, now int64) (c Connection, err error) {
	err = pg.RetryKeyed(ctx, a.transact, func(ctx context.Context, tx appTx) error {
		if c, err = tx.putConnection(ctx, requested, now); err != nil {
			return err
		}
		return tx.Audit(ctx, "provider.connect", c.AccountID, nil, connectionFields(c))
	})
	return c, err
}

func (tx appTx) putConnection(ctx context.Context, requested Connection, now int64) (Connection, error) {
	current, err := pg.Find(ctx, tx, lockConnection, readConnection, ErrUnknown)
	switch {
	case errors.Is(err, ErrUnknown):
		return tx.insertConnection(ctx, requested, now)
	case err != nil:
		return current, err
	case current.ID == requested.ID:
		c, err := tx.updateConnection(ctx, current, requested, now)
		if err != nil {
			return c, err
		}
		return c, tx.retryFailedNow(ctx, now)
	case current.Mode == SandboxConnection && requested.Mode == SandboxConnection:
		return current, nil
	}
	dependents, err := tx.usesOfAccount(ctx, current)
	if err != nil {
		return current, err
	}
	if dependents > 0 {
		return current, fault.New(fault.ProviderInUse)
	}
	if err := tx.Exec(ctx, retireConnection, 1, current.ID, now); err != nil {
		return current, err
	}
	return tx.insertConnection(ctx, requested, now)
}

func (tx appTx) insertConnection(ctx context.Context, c Connection, now int64) (Connection, error) {
	c.CreatedAt, c.ChangedAt, c.ReplacedAt = now, now, 0
	secrets, until := c.secrets()
	if err := tx.Exec(ctx, insertConnection, 1, pg.Named{
		"org_id": tx.Scope.OrgID, "id": c.ID, "mode": c.Mode, "live": c.Live, "account_id": c.AccountID, "api_key": c.SealedKey,
		"api_key_last_four": pg.OrNull(c.KeyLastFour), "endpoint_id": pg.OrNull(c.EndpointID), "webhook_secrets": secrets,
		"webhook_secrets_until": until, "events_after": c.EventsAfter, "portal_configuration": pg.OrNull(c.PortalConfiguration),
		"created_at": c.CreatedAt, "changed_at": c.ChangedAt, "replaced_at": pg.OrNull(c.ReplacedAt),
	}); err != nil {
		return c, err
	}
	if err := tx.Exec(ctx, insertConnectionAddress, 1, tx.Scope.OrgID, c.ID); err != nil {
		return c, err
	}
	if _, err := tx.ExecAny(ctx, forgetPlansAtProvider); err != nil {
		return c, err
	}
	if _, err := tx.ExecAny(ctx, enqueuePlans, now, ids.New()); err != nil {
		return c, err
	}
	return c, tx.retryFailedNow(ctx, now)
}

func (tx appTx) updateConnection(ctx context.Context, current, c Connection, now int64) (Connection, error) {
	c.Mode, c.CreatedAt, c.ChangedAt = current.Mode, current.CreatedAt, now
	secrets, until := c.secrets()
	return c, tx.Exec(ctx, updateConnection, 1, pg.Named{
		"id": c.ID, "live": c.Live, "account_id": c.AccountID, "api_key": c.SealedKey,
		"api_key_last_four": pg.OrNull(c.KeyLastFour), "endpoint_id": pg.OrNull(c.EndpointID), "webhook_secrets": secrets,
		"webhook_secrets_until": until, "events_after": c.EventsAfter, "portal_configuration": pg.OrNull(c.PortalConfiguration),
		"changed_at": c.ChangedAt,
	})
}

// retryFailedNow makes failed jobs due now. Those that run are run again.
func (tx appTx) retryFailedNow(ctx context.Context, now int64) error {
	if _, err := tx.ExecAny(ctx, queue.RetryFailedJobs, now, ids.New()); err != nil {
		return err
	}
	return tx.ScheduleWake(ctx)
}

// SetEventsAfter stores the cursor into the provider's list of events.
func (a Accounts) SetEventsAfter(ctx context.Context, connection ids.ID, at int64) error {
	return a.app.ExecAny(ctx, setEventsAfter, connection, at)
}

// SetPortalConfiguration stores the provider's id of the customer portal configuration.
func (a Accounts) SetPortalConfiguration(ctx context.Context, connection ids.ID, id string) error {
	return a.app.ExecAny(ctx, setPortalConfiguration, connection, id)
}

func connectionFields(c Connection) audit.Fields {
	return audit.Fields{
		"provider": string(c.Mode),
		"account":  c.AccountID,
		"live":     strconv.FormatBool(c.Live),
		"key":      "…" + c.KeyLastFour,
		"endpoint": c.EndpointID,
	}
}
