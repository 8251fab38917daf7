package api

import (
	"net/http"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/audit"
)

const (
	// cachedKeys is how many keys a node keeps as they were when last read.
	cachedKeys = 10_000
	// refusedFor is how long, in milliseconds, a key that was refused is refused from
	// memory: one that floods costs one read a second. No refused key works again.
	refusedFor = 1000
)

// cachedKey is a key as it was when last read. Only operations that have the key
// compared again inside their transaction may be served by it.
type cachedKey struct {
	keys.APIKey
	readAt int64
}

type keyCache = lru.Cache[keyName, cachedKey]

// address finds the application by the key that the request carries.
func (s *Server) address(c *call, r *http.Request) error {
	secret, err := keys.Parse(bearer(r.Header))
	if err != nil {
		return err
	}
	hash := secret.Hash()
	address, known := s.store.Directory().KnownKey(hash)
	if !known {
		if address, err = s.lookup.address(c.ctx, hash, s.networkOf(r)); err != nil {
			return err
		}
	}
	c.scope, c.keyID = address.Scope, address.KeyID
	return nil
}

// authenticate reads the key, so that one revoked a moment ago, on any node, is
// refused. A refusal is repeated from memory for a moment.
func (s *Server) authenticate(c *call) (err error) {
	if cached, known := s.keys.Get(c.keyName()); known && c.now-cached.readAt < refusedFor && cached.readAt <= c.now {
		if err := cached.Usable(c.now); err != nil {
			return err
		}
	}
	if c.key, err = s.store.App(c.scope).UseKey(c.ctx, c.keyID, c.now); err != nil && c.key.ID.IsZero() {
		s.keys.Remove(c.keyName())
		return err
	}
	s.keys.Add(c.keyName(), cachedKey{c.key, c.now})
	if err != nil {
		return err
	}
	return c.key.Permissions.Require(c.route.permission)
}

// audited is the application for changes that are recorded in its organization's audit
// log, with the key as the actor. Usage is not: each event is an entry of its own.
func (s *Server) audited(c *call) store.App {
	by := audit.Actor{Name: audit.Keys + c.key.Name + " (" + c.keyID.Format(ids.APIKey) + ")", RequestID: c.id, At: c.now - c.ahead}
	if network := s.networkOf(c.request); network.IsValid() {
		by.Address = network.String()
	}
	return s.store.App(c.scope).By(by)
}

func (c *call) keyName() keyName { return keyName{c.scope.AppID, c.keyID} }

// Authorize finds the application of a request outside of this interface that
// comes with a key of it, one that works and has the permission.
func (s *Server) Authorize(r *http.Request, permission tenancy.Permission) (tenancy.Scope, error) {
	if err := s.store.Clock().Trust(r.Context()); err != nil {
		return tenancy.Scope{}, err
	}
	ctx, cancel := detach(r.Context(), requestTimeout)
	defer cancel()
	c := &call{ctx: ctx, route: route{permission: permission}, now: s.now()}
	if err := s.address(c, r); err != nil {
		return tenancy.Scope{}, err
	}
	if err := s.limits.take(c.keyName(), nil); err != nil {
		return tenancy.Scope{}, err
	}
	return c.scope, s.authenticate(c)
}

// presume goes by the key as it was when last read, for an operation whose
// transaction will compare it. Whatever would be refused is read anew; so is a
// key whose last use is due to be noted.
func (s *Server) presume(c *call) error {
	key, known := s.keys.Get(c.keyName())
	if !known || key.Usable(c.now) != nil || !key.Permissions.Has(c.route.permission) || keys.TouchDue(key.LastUsedAt, c.now) {
		return s.authenticate(c)
	}
	c.key, c.presumed = key.APIKey, true
	return nil
}

// confirm makes sure of a presumed key before a request is refused for anything
// else: a revoked key is not told what is wrong with its body.
func (s *Server) confirm(c *call, refusal error) error {
	if !c.presumed {
		return refusal
	}
	if err := s.authenticate(c); err != nil {
		return err
	}
	return refusal
}

// bearer is the key of the Authorization header, or nothing. Of two headers nobody
// can say which one was meant.
func bearer(header http.Header) string {
	headers := header["Authorization"]
	if len(headers) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}
