package engine

// Answer is the saved response to a request with an idempotency key, so that a retry
// changes nothing.
type Answer struct {
	Key         string
	Fingerprint string // of method, path and parameters
	Status      int
	Body        []byte
	At          Time
	Nth         int64
}

const (
	// answerLife is how long a key is valid, by the account's clock.
	answerLife = day
	// maxAnswers is how many answers are kept; the oldest are pruned first.
	maxAnswers = 1_000
)

// LookupAnswer returns the saved answer of an idempotency key. The same key with
// different parameters is refused.
func (a *Account) LookupAnswer(env Env, key, fingerprint string) (answer Answer, known bool, err error) {
	kept := a.Answers.Get(key)
	if kept == nil || kept.At < env.Now-answerLife {
		return Answer{}, false, nil
	}
	if kept.Fingerprint != fingerprint {
		return Answer{}, false, &Refusal{
			Status: badRequest, Type: idempotencyError,
			Message: "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '" + key + "' if you meant to execute a different request.",
		}
	}
	return *kept, true, nil
}

// StoreAnswer saves an answer. Expired ones are pruned.
func (a *Account) StoreAnswer(env Env, answer Answer) {
	a.Made++
	answer.At, answer.Nth = env.Now, a.Made
	a.Answers.Put(&answer)
}

// KeyInUse refuses a request whose key another request is using now.
func KeyInUse(key string) *Refusal {
	return &Refusal{
		Status: conflict, Type: idempotencyError, Code: "idempotency_key_in_use",
		Message: "There is currently another in-progress request using this Idempotency-Key (" + key + "). Try again in a moment.",
	}
}
