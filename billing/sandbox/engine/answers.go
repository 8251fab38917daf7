package engine

// Answer is what a request with an idempotency key was answered, kept so that
// sending it again changes nothing.
type Answer struct {
	Key         string
	Fingerprint string // of what was asked
	Status      int
	Body        []byte
	At          Time
	Nth         int64
}

const (
	// How long a key holds, by the world's clock.
	answerLife = day
	// maxAnswers bounds what a busy day may leave behind; the oldest go first.
	maxAnswers = 1_000
)

// Recall gives the answer that the key already has. The same key with another
// request is a mistake of the caller's, and is told so.
func (w *Account) Recall(m Clock, key, fingerprint string) (answer Answer, known bool, err error) {
	kept := w.Answers.Get(key)
	if kept == nil || kept.At < m.Now-answerLife {
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

// Remember keeps an answer. Those whose time is over are pruned.
func (w *Account) Remember(m Clock, answer Answer) {
	w.Made++
	answer.At, answer.Nth = m.Now, w.Made
	w.Answers.Put(&answer)
}

// InUse is what a request gets whose key another one is using at this moment.
func InUse(key string) *Refusal {
	return &Refusal{
		Status: conflict, Type: idempotencyError, Code: "idempotency_key_in_use",
		Message: "There is currently another in-progress request using this Idempotency-Key (" + key + "). Try again in a moment.",
	}
}
