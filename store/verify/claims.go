package verify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
)

type claimTimes struct{ At, Until int64 }

const (
	keepClaim = `
		INSERT INTO verification_claims (subject_id, kind, claimed_at, claimed_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (subject_id, kind) DO UPDATE SET claimed_at = excluded.claimed_at, claimed_until = excluded.claimed_until`

	// As for an application, which has its claim in a row of its own.
	claimInstallation = keepClaim + `
		WHERE verification_claims.claimed_until <= excluded.claimed_at
			AND (verification_claims.claimed_at <= $5 OR verification_claims.claimed_until > 0)`

	endClaim = `
		UPDATE verification_claims SET claimed_until = $4 WHERE subject_id = $1 AND kind = $2 AND claimed_at = $3`
)

// DueVerifications lists the applications that no node verifies and whose last
// verification of the kind is at least the interval ago or did not end before its claim
// ran out: its node has died. The longest waiting comes first.
// It is one read for all of them.
func (i Installation) DueVerifications(ctx context.Context, kind Kind, now int64, every time.Duration) ([]tenancy.Scope, error) {
	return pg.CollectSQL(ctx, i.db.Pool, "due verifications", pgx.RowToStructByPos[tenancy.Scope], `
		SELECT a.org_id, a.id
		FROM applications a LEFT JOIN verification_claims c ON c.subject_id = a.id AND c.kind = $1
		WHERE c.claimed_at IS NULL OR c.claimed_until <= $3 AND (c.claimed_at <= $2 OR c.claimed_until > 0)
		ORDER BY c.claimed_at NULLS FIRST, a.id`, kind, now-every.Milliseconds(), now)
}

// VerificationAge is when the subject that has waited longest for a kind of verification
// was last claimed for one: an application, or the installation itself. One that was
// never verified counts from its creation.
type VerificationAge struct {
	Kind   Kind
	Oldest int64
}

// VerificationAges reads the age of each kind of verification that has a subject.
func (i Installation) VerificationAges(ctx context.Context) ([]VerificationAge, error) {
	return pg.CollectSQL(ctx, i.db.Pool, "verification ages", pgx.RowToStructByPos[VerificationAge], `
		SELECT k.kind, min(coalesce(c.claimed_at, a.created_at))
		FROM applications a CROSS JOIN (VALUES ('all'), ('new')) AS k (kind)
			LEFT JOIN verification_claims c ON c.subject_id = a.id AND c.kind = k.kind
		GROUP BY k.kind
		UNION ALL SELECT kind, claimed_at FROM verification_claims WHERE subject_id = $1
		ORDER BY 1`, ids.ID{})
}

// ClaimInstallation reports whether this node is to verify what belongs to no
// application now.
func (i Installation) ClaimInstallation(ctx context.Context, now int64, every, limit time.Duration) (bool, error) {
	const name = "claim of the installation"
	waiting, err := pg.FindSQL(ctx, i.db.Pool, name, pgx.RowTo[bool], `
		SELECT EXISTS (SELECT 1 FROM verification_claims WHERE subject_id = $1 AND kind = $2 AND (claimed_until > $4 OR claimed_at > $3 AND claimed_until = 0))`,
		ids.ID{}, WholeInstallation, now-every.Milliseconds(), now)
	if err != nil || waiting {
		return false, err
	}
	claimed, err := pg.ExecSQL(ctx, i.db.Pool, name, claimInstallation, ids.ID{}, WholeInstallation, now, now+limit.Milliseconds(), now-every.Milliseconds())
	return claimed == 1, err
}

// FinishInstallation ends the claim that was made at this time. With a time to retry at
// it is due again then.
func (i Installation) FinishInstallation(ctx context.Context, claimedAt, retryAt int64) error {
	_, err := pg.ExecSQL(ctx, i.db.Pool, "end of the claim of the installation", endClaim, ids.ID{}, WholeInstallation, claimedAt, retryAt)
	return err
}
