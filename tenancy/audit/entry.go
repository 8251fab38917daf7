package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"purser/ids"
	"purser/tenancy"
)

// Actor is who did something, when, and from where: a person, the command line, or a
// program with an API key.
type Actor struct {
	UserID    ids.ID // zero when it was no person
	Name      string // as people know them: the address of their account, or the key's name and id
	Address   string // of the network, empty when there is none
	RequestID ids.ID
	At        int64
	// Access is what the member may do by this request. If it has changed meanwhile, the
	// action is refused; without a role it is not compared.
	Access tenancy.Access
}

// Keys is how the names of API keys as actors begin. No address of an account does.
const Keys = "API key "

// IsZero reports work that is not recorded: usage, and what the server does by itself.
func (a Actor) IsZero() bool { return a == Actor{} }

// Fields are what an entry tells of its target before or after, each as people
// read it. Secrets and their hashes are no facts.
type Fields map[string]string

// text is the facts as they are sealed and kept: JSON, sorted by name.
func (f Fields) text() string {
	if len(f) == 0 {
		return "{}"
	}
	text, err := json.Marshal(map[string]string(f))
	if err != nil {
		panic(err) // a map of strings has no text that JSON lacks
	}
	return string(text)
}

// Entry is one line of the log.
type Entry struct {
	Actor
	OrgID  ids.ID
	AppID  ids.ID // zero when it is about the organization
	Number int64  // from one, without a gap
	Action string // such as "key.create"
	Target string // such as "key_01jq…"
	Before string // facts, as JSON
	After  string
	Seal   Seal
}

// Seal is the hash of an entry and of all before it.
type Seal [sha256.Size]byte

// Head is where a chain ends. The zero head is of a chain without entries.
type Head struct {
	Number int64
	Seal   Seal
}

// Action is what an actor did.
type Action struct {
	AppID         ids.ID
	Action        string
	Target        string
	Before, After Fields
}

// Next makes the entry that follows a head.
func Next(org ids.ID, head Head, by Actor, d Action) Entry {
	e := Entry{
		Actor: by, OrgID: org, AppID: d.AppID, Number: head.Number + 1,
		Action: d.Action, Target: d.Target, Before: d.Before.text(), After: d.After.text(),
	}
	e.Seal = e.seal(head.Seal)
	return e
}

// Head is the head of the chain that ends with the entry.
func (e Entry) Head() Head { return Head{Number: e.Number, Seal: e.Seal} }

// Fields reads what the entry tells of before and after.
func (e Entry) Fields() (before, after Fields) {
	// What cannot be read was not written by this package: the chain will say so.
	_ = json.Unmarshal([]byte(e.Before), &before)
	_ = json.Unmarshal([]byte(e.After), &after)
	return before, after
}

// seal hashes every field with its length before it, so that no text can pass for
// two others.
func (e Entry) seal(previous Seal) (seal Seal) {
	hash := sha256.New()
	number := func(n int64) {
		var bytes [8]byte
		binary.BigEndian.PutUint64(bytes[:], uint64(n))
		hash.Write(bytes[:])
	}
	text := func(s string) {
		number(int64(len(s)))
		hash.Write([]byte(s))
	}
	hash.Write(previous[:])
	hash.Write(e.OrgID[:])
	number(e.Number)
	number(e.At)
	hash.Write(e.UserID[:])
	text(e.Name)
	text(e.Address)
	hash.Write(e.RequestID[:])
	hash.Write(e.AppID[:])
	text(e.Action)
	text(e.Target)
	text(e.Before)
	text(e.After)
	hash.Sum(seal[:0])
	return seal
}
