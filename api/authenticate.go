package api

import (
	"context"
	"net/http"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/audit"
)

const (
	// cachedKeys is the capacity of the key cache of one node.
	cachedKeys = 10_000
	// refusalTTL is how long, in milliseconds, a refused key is refused from the cache:
	// a flood with one costs one read a second. Only one of an archived application can become
	// valid again.
	refusalTTL = 1000
)

// cachedKey is a key as last read from the database. Only operations whose transaction
// compares the key again may use it.
type cachedKey struct {
	keys.APIKey
	readAt int64
}

type keyCache = lru.Cache[keyName, cachedKey]

// resolveKey finds the application of the request's key.
func (s *Server) resolveKey(c *call, r *http.Request) error {
	secret, err := keys.Parse(bearer(r.Header))
	if err != nil {
		return err
	}
	hash := secret.Hash()
	address, known := s.store.Directory().KnownKey(hash)
	if !known {
		known, err = s.lookups.Find(c.ctx, httpd.Secret{Kind: "key", Hash: hash}, s.networkOf(r), func(ctx context.Context) (bool, error) {
			address, err = s.store.Directory().KeyByHash(ctx, hash)
			if fault.Is(err, fault.InvalidAPIKey) {
				return false, nil
			}
			return true, err
		})
		if err != nil {
			return err
		}
		if !known {
			return fault.New(fault.InvalidAPIKey)
		}
	}
	c.scope, c.keyID, c.record.Anonymous = address.Scope, address.KeyID, false
	return nil
}

// authenticate reads the key from the database, so a key revoked on any node is refused
// at once. A refusal is repeated from the cache for refusalTTL.
func (s *Server) authenticate(c *call) (err error) {
	if cached, known := s.keys.Get(c.keyName()); known && c.now-cached.readAt < refusalTTL && cached.readAt <= c.now {
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
	return c.key.Permissions.RequireAll(c.route.permissions)
}

// authenticateAgain refuses a key that was revoked or has expired while the request waited
// or its body arrived.
func (s *Server) authenticateAgain(ctx context.Context, c *call) error {
	again := *c
	again.ctx, again.now = ctx, s.now()
	return s.authenticate(&again)
}

// ForgetKeys drops an application's keys from the cache: those of a restored one would be
// refused for the rest of refusalTTL. Other nodes do that.
func (s *Server) ForgetKeys(app ids.ID) {
	for _, name := range s.keys.Keys() {
		if name.app == app {
			s.keys.Remove(name)
		}
	}
}

// audited returns the application with the key as the audit actor. Usage is not audited:
// each event is a row of its own.
func (s *Server) audited(c *call) store.App { return s.store.App(c.scope).By(s.actor(c)) }

// actor is the key of a request in the audit log.
func (s *Server) actor(c *call) audit.Actor {
	by := audit.Actor{Name: audit.Keys + c.key.Name + " (" + c.keyID.Format(ids.APIKey) + ")", RequestID: c.id, At: c.now - c.clockOffset}
	if network := s.networkOf(c.request); network.IsValid() {
		by.Address = network.String()
	}
	return by
}

func (c *call) keyName() keyName { return keyName{c.scope.AppID, c.keyID} }

// Authorize authenticates a request outside /v1 by its API key, which must be usable and
// have the permission.
func (s *Server) Authorize(r *http.Request, permission tenancy.Permission) (tenancy.Scope, error) {
	if err := s.store.Clock().Trust(r.Context()); err != nil {
		return tenancy.Scope{}, err
	}
	ctx, cancel := httpd.Detach(r.Context(), requestTimeout)
	defer cancel()
	c := &call{ctx: ctx, record: &httpd.Request{}, route: route{permissions: tenancy.PermissionsOf(permission)}, now: s.now()}
	if err := s.resolveKey(c, r); err != nil {
		return tenancy.Scope{}, err
	}
	if err := s.limits.take(c.keyName(), httpd.Claim{Tokens: 1}, nil); err != nil {
		return tenancy.Scope{}, err
	}
	return c.scope, s.authenticate(c)
}

// authenticateCached accepts the cached key for an operation whose transaction compares
// it. A key that would be refused, or whose last use is due to be recorded, is read from
// the database.
func (s *Server) authenticateCached(c *call) error {
	key, known := s.keys.Get(c.keyName())
	if !known || key.Usable(c.now) != nil || !c.route.permissions.Within(key.Permissions) || keys.TouchDue(key.LastUsedAt, c.now) {
		return s.authenticate(c)
	}
	c.key, c.fromCache = key.APIKey, true
	return nil
}

// reauthenticate reads a cached key before the request is refused for another reason: a
// revoked key must not learn what is wrong with its body.
func (s *Server) reauthenticate(c *call, refusal error) error {
	if !c.fromCache {
		return refusal
	}
	if err := s.authenticate(c); err != nil {
		return err
	}
	return refusal
}

// bearer returns the key of the Authorization header, or "". Two headers are ambiguous,
// so neither is used.
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
