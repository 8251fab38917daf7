package api

import (
	"net/http"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"purser/ids"
	"purser/keys"
	"purser/tenancy"
)

// rememberedKeys is how many keys of the hot path a node remembers.
const rememberedKeys = 10_000

// hotKeys are keys as they were when last read. Only operations that have the
// key compared again inside their transaction may go by them.
type hotKeys = lru.Cache[ids.ID, keys.APIKey]

// address finds the application by the key that the request carries.
func (s *Server) address(c *call, header http.Header) error {
	secret, err := keys.Parse(bearer(header))
	if err != nil {
		return err
	}
	address, err := s.store.Directory().KeyByHash(c.ctx, secret.Hash())
	if err != nil {
		return err
	}
	c.scope, c.keyID = address.Scope, address.KeyID
	return nil
}

// authenticate reads the key anew, so that one revoked a moment ago, on whichever
// node, is refused.
func (s *Server) authenticate(c *call) (err error) {
	if c.key, err = s.store.App(c.scope).UseKey(c.ctx, c.keyID, c.now); err != nil {
		s.hotKeys.Remove(c.keyID)
		return err
	}
	s.hotKeys.Add(c.keyID, c.key)
	return c.key.Permissions.Require(c.route.permission)
}

// Authorize finds the application of a request outside of this interface that
// comes with a key of it, one that works and has the permission.
func (s *Server) Authorize(r *http.Request, permission tenancy.Permission) (tenancy.Scope, error) {
	if err := s.store.Clock().Trust(r.Context()); err != nil {
		return tenancy.Scope{}, err
	}
	c := &call{ctx: r.Context(), route: route{permission: permission}, now: s.now()}
	if err := s.address(c, r.Header); err != nil {
		return tenancy.Scope{}, err
	}
	if err := s.authenticate(c); err != nil {
		return tenancy.Scope{}, err
	}
	return c.scope, s.limits.take(c.keyID)
}

// presume goes by the key as it was when last read, for an operation whose
// transaction will compare it. Whatever would be refused is read anew; so is a
// key whose last use is due to be noted.
func (s *Server) presume(c *call) error {
	key, known := s.hotKeys.Get(c.keyID)
	if !known || key.Usable(c.now) != nil || !key.Permissions.Has(c.route.permission) || keys.TouchDue(key.LastUsedAt, c.now) {
		return s.authenticate(c)
	}
	c.key, c.presumed = key, true
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
