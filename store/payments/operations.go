package payments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/queue"
)

// operationRecoveryDelay is how long an operation may run before a job checks whether
// it was abandoned, in milliseconds.
const operationRecoveryDelay = 60_000

// OperationRecord is a stored operation: its parameters, its progress and its response.
type OperationRecord struct {
	billing.Operation
	Identity string                // empty for a plan's
	ChangeID ids.ID                // the change or top-up that it requests; zero for none
	Answer   *billing.Subscription // the first answer; nil for none
	Result   map[string]string     // the first answer of a checkout
	Error    string                // why it failed
}

// Completion finishes an operation.
type Completion struct {
	Operation  billing.Operation // done, or failed
	Result     map[string]string
	Answer     *billing.Subscription
	Error      string
	DropChange ids.ID // change or top-up to drop; zero for none
	// Subscription is a free one to store; nil for none.
	Subscription *billing.Subscription
	Alerts       []billing.Alert // what a person has to do
	Jobs         []queue.Job     // what follows
	Now          int64           // when the alerts were raised
}

const opColumns = `
	o.id, o.kind, o.idempotency_key, o.fingerprint, o.parameters, o.step, o.attempt, o.state, o.created_at, o.attempted_at,
	w.identity, o.change_id, o.answer, o.result, o.error, o.connection_id`

const fromOps = `
	FROM provider_ops o LEFT JOIN wallets w ON w.app_id = $1 AND w.id = o.wallet_id`

var (
	insertOp = pg.Declare("insert op", pg.Insert("provider_ops", `id, org_id, wallet_id, kind, idempotency_key, fingerprint, parameters, step, attempt, state,
			created_at, attempted_at, change_id, answer, connection_id, fence`))

	insertAction = pg.Declare("insert action", `
		INSERT INTO provider_ops (app_id, id, org_id, wallet_id, kind, idempotency_key, fingerprint, parameters, step, attempt, state, created_at,
			connection_id)
		VALUES ($1, @id, @org_id, @wallet_id, 'action', @idempotency_key, @fingerprint, @parameters, @step, 1, 'running', @created_at, @connection_id)
		ON CONFLICT (app_id, kind, idempotency_key) DO UPDATE
		SET state = 'running', attempt = provider_ops.attempt + 1, attempted_at = NULL, created_at = excluded.created_at
		WHERE provider_ops.state = 'done' AND provider_ops.parameters ->> 'action' = '`+string(billing.VoidRenewal)+`'
			OR provider_ops.state <> 'running' AND provider_ops.parameters ->> 'action' = '`+string(billing.RefundCharge)+`'
		RETURNING id`)

	selectOp = pg.Declare("select op", `
		SELECT`+opColumns+fromOps+`
		WHERE o.app_id = $1 AND o.kind = $2 AND o.idempotency_key = $3`)

	selectOpByID = pg.Declare("select op by id", `
		SELECT`+opColumns+fromOps+`
		WHERE o.app_id = $1 AND o.id = $2`)

	// Operations on the identity's subscription that began after this one. An operation
	// without a fence predates all that have one.
	countLaterOps = pg.Declare("count later ops", `
		SELECT count(*)
		FROM provider_ops o JOIN provider_ops l ON l.app_id = $1 AND l.wallet_id = o.wallet_id
		WHERE o.app_id = $1 AND o.id = $2 AND l.fence > coalesce(o.fence, 0) AND l.state <> 'failed'
			AND l.kind IN ('change', 'cancel', 'checkout')`)

	// Upgrades of the wallet that may have been charged, or may yet be.
	countUnsettledOps = pg.Declare("count unsettled ops", `
		SELECT count(*)
		FROM provider_ops o
		WHERE o.app_id = $1 AND o.wallet_id = $2 AND o.state = 'running' AND o.step = '`+string(billing.StepUpgrade)+`' AND o.attempted_at > $3`)

	updateOp = pg.Declare("update op", `
		UPDATE provider_ops SET parameters = $3, step = $4, attempt = $5, attempted_at = $6, connection_id = $7, state = 'running', error = NULL
		WHERE app_id = $1 AND id = $2 AND state <> 'done'`)

	closeOp = pg.Declare("close op", `
		UPDATE provider_ops SET state = @state, step = @step, attempt = @attempt, answer = @answer, result = @result, error = @error,
			connection_id = coalesce(connection_id, @connection_id)
		WHERE app_id = $1 AND id = @id AND state <> 'done'`)

	selectWalletOfOp = pg.Declare("select wallet of op", `
		SELECT o.wallet_id FROM provider_ops o WHERE o.app_id = $1 AND o.id = $2`)

	setOpChange = pg.Declare("set op change", `
		UPDATE provider_ops SET change_id = $3 WHERE app_id = $1 AND id = $2`)
)

func readOp(row pgx.CollectableRow) (OperationRecord, error) {
	var o OperationRecord
	var fingerprint, parameters, answer, result []byte
	var attempted *int64
	var identity, failure *string
	var change, connection *ids.ID
	err := row.Scan(&o.ID, &o.Kind, &o.IdempotencyKey, &fingerprint, &parameters, &o.Step, &o.Attempt, &o.State, &o.CreatedAt, &attempted,
		&identity, &change, &answer, &result, &failure, &connection)
	if err != nil {
		return o, err
	}
	copy(o.Fingerprint[:], fingerprint)
	o.AttemptedAt, o.Identity, o.ChangeID, o.Error = pg.OrZero(attempted), pg.OrZero(identity), pg.OrZero(change), pg.OrZero(failure)
	o.ConnectionID = pg.OrZero(connection)
	if o.Parameters, err = billing.DecodeParameters(o.Kind, parameters); err != nil {
		return o, fmt.Errorf("store: op parameters: %w", err)
	}
	if result != nil {
		if err := json.Unmarshal(result, &o.Result); err != nil {
			return o, fmt.Errorf("store: op result: %w", err)
		}
	}
	o.Answer, err = decodeAnswer(answer)
	return o, err
}

// Operation reads an operation by its idempotency key.
func (a App) Operation(ctx context.Context, kind billing.OperationKind, idempotencyKey string) (OperationRecord, error) {
	return pg.FindOne(ctx, a.app, selectOp, readOp, ErrUnknown, kind, idempotencyKey)
}

func (tx appTx) operation(ctx context.Context, kind billing.OperationKind, idempotencyKey string) (OperationRecord, error) {
	return pg.Find(ctx, tx, selectOp, readOp, ErrUnknown, kind, idempotencyKey)
}

func (a App) OperationByID(ctx context.Context, id ids.ID) (OperationRecord, error) {
	return pg.FindOne(ctx, a.app, selectOpByID, readOp, ErrUnknown, id)
}

func (tx appTx) operationByID(ctx context.Context, id ids.ID) (OperationRecord, error) {
	return pg.Find(ctx, tx, selectOpByID, readOp, ErrUnknown, id)
}

// Superseded reports whether a later operation on the identity's subscription began and
// may have been executed.
func (a App) Superseded(ctx context.Context, op ids.ID) (bool, error) {
	later, err := pg.FindOne(ctx, a.app, countLaterOps, pgx.RowTo[int64], ErrUnknown, op)
	return later > 0, err
}

// PutOperation stores an operation's progress before its next provider call. It resumes
// a failed operation; a finished one is not changed.
func (a App) PutOperation(ctx context.Context, f queue.Fence, op billing.Operation) error {
	return a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		return tx.putOperation(ctx, op)
	})
}

func (tx appTx) putOperation(ctx context.Context, op billing.Operation) error {
	parameters, err := op.Parameters.Encode()
	if err != nil {
		return err
	}
	_, err = tx.ExecAny(ctx, updateOp, op.ID, parameters, op.Step, op.Attempt, pg.OrNull(op.AttemptedAt), pg.OrNull(op.ConnectionID))
	return err
}

func (a App) CompleteOperation(ctx context.Context, f queue.Fence, c Completion) error {
	if c.Subscription != nil {
		defer a.app.WalletChanged(c.Subscription.Identity)
	}
	return a.fenced(ctx, f, func(ctx context.Context, tx appTx) error {
		return tx.complete(ctx, &c)
	})
}

// complete finishes an operation, if there is one, and schedules the next wake.
func (tx appTx) complete(ctx context.Context, c *Completion) error {
	if c == nil {
		return tx.ScheduleWake(ctx)
	}
	if err := tx.writeFreeSubscription(ctx, c.Subscription); err != nil {
		return err
	}
	answer, err := encodeAnswer(c.Answer)
	if err != nil {
		return err
	}
	result, err := encodeMap(c.Result)
	if err != nil {
		return err
	}
	if _, err := tx.ExecAny(ctx, closeOp, pg.Named{
		"id": c.Operation.ID, "state": c.Operation.State, "step": c.Operation.Step, "attempt": c.Operation.Attempt,
		"answer": answer, "result": result, "error": pg.OrNull(pg.CutText(c.Error, queue.MaxError)),
		"connection_id": pg.OrNull(c.Operation.ConnectionID),
	}); err != nil {
		return err
	}
	if !c.DropChange.IsZero() {
		if err := tx.dropChange(ctx, c.DropChange); err != nil {
			return err
		}
		if _, err := tx.ExecAny(ctx, dropTopUp, c.DropChange); err != nil {
			return err
		}
	}
	if err := tx.raiseOperationAlerts(ctx, c); err != nil {
		return err
	}
	if err := tx.DeleteJob(ctx, queue.JobOperation, c.Operation.ID.String()); err != nil {
		return err
	}
	if err := tx.Enqueue(ctx, c.Jobs...); err != nil {
		return err
	}
	return tx.ScheduleWake(ctx)
}

// raiseOperationAlerts raises the alerts of an operation about its wallet.
func (tx appTx) raiseOperationAlerts(ctx context.Context, c *Completion) error {
	if len(c.Alerts) == 0 {
		return nil
	}
	walletID, err := pg.Find(ctx, tx, selectWalletOfOp, pgx.RowTo[*ids.ID], ErrUnknown, c.Operation.ID)
	if err != nil {
		return err
	}
	return tx.raiseAlerts(ctx, pg.OrZero(walletID), c.Alerts, c.Now)
}

func (tx appTx) writeFreeSubscription(ctx context.Context, s *billing.Subscription) error {
	if s == nil {
		return nil
	}
	locked, err := tx.LockWallets(ctx, s.Identity)
	if err != nil {
		return err
	}
	if len(locked) == 0 || !s.Local() {
		return ErrUnknown
	}
	before, err := tx.subscriptionByID(ctx, s.ID)
	if err != nil {
		return err
	}
	return tx.writeSubscription(ctx, &locked[0], before, *s)
}

// enqueueActions creates operations for the actions of a projection, each once. A void
// that finished with the renewal still open is repeated: a debit was in progress and
// may have failed since. So is a refund that a member requests again: it refunds what the
// provider says is left.
func (tx appTx) enqueueActions(ctx context.Context, walletID, connection ids.ID, actions []billing.Action, now int64) error {
	for _, action := range actions {
		step := billing.StepEnd
		switch action.Kind {
		case billing.RefundInvoice, billing.RefundCharge:
			step = billing.StepRefund
		case billing.VoidRenewal:
			step = billing.StepFinalize
		case billing.ReturnBalance:
			step = billing.StepCredit
		}
		parameters, err := billing.Parameters{Action: &billing.ActionParameters{Kind: action.Kind, ObjectID: action.ObjectID}}.Encode()
		if err != nil {
			return err
		}
		id, err := optionalRow(pg.Find(ctx, tx, insertAction, pgx.RowTo[ids.ID], ErrUnknown, pg.Named{
			"id": ids.New(), "org_id": tx.Scope.OrgID, "wallet_id": walletID,
			"idempotency_key": actionKey(action.Kind, action.ObjectID), "fingerprint": make([]byte, len(billing.Fingerprint{})),
			"parameters": parameters, "step": step, "created_at": now, "connection_id": pg.OrNull(connection),
		}))
		if err != nil {
			return err
		}
		if id == nil {
			continue
		}
		if err := tx.Enqueue(ctx, queue.Job{Kind: queue.JobOperation, Object: id.String(), DueAt: now}); err != nil {
			return err
		}
	}
	return nil
}

// actionKey is the idempotency key of an action: it has one operation for each object.
func actionKey(kind billing.ActionKind, objectID string) string { return string(kind) + ":" + objectID }

func encodeMap(m map[string]string) ([]byte, error) {
	if m == nil {
		m = map[string]string{}
	}
	return json.Marshal(m)
}

// ErrUnknown means that no such provider object is stored.
var ErrUnknown = errors.New("store: unknown provider object")
