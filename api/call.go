package api

import (
	"context"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
)

// call is the state of one request.
type call struct {
	ctx           context.Context
	record        *httpd.Request
	id            ids.ID // of the request
	route         route
	operation     *operation
	request       *http.Request
	header        http.Header // of the response
	keyID         ids.ID
	key           keys.APIKey
	fromCache     bool          // the key was read from the cache
	authenticated bool          // the key is usable, with or without the permission
	scope         tenancy.Scope // of the key
	path          map[string]string
	query         input
	body          input
	now           int64 // by the server's clock; see applyClockOffset
	clockOffset   int64 // of the application's clock from the server's
}

// serve runs the checks of a request in the documented order of refusals, then its
// handler.
func (s *Server) serve(r route, op *operation) echo.HandlerFunc {
	return func(ec echo.Context) error {
		request := ec.Request()
		ctx, cancel := httpd.Detach(request.Context(), r.timeout())
		defer cancel()
		record := httpd.RequestOf(ec)
		c := &call{ctx: ctx, route: r, operation: op, request: request, header: ec.Response().Header(), record: record, id: record.ID}
		record.Anonymous, record.Done = true, func() { s.recordRequest(c) }
		var err error
		if c.path, err = pathParameters(ec); err != nil {
			return err
		}
		if err := s.store.Clock().Trust(ctx); err != nil {
			return err
		}
		c.now = s.now()
		if err := s.resolveKey(c, request); err != nil {
			return err
		}
		// Before any database work.
		if err := s.limits.take(c.keyName(), httpd.Claim{Tokens: 1, Most: tokensOf(op.maxItems)}, c.header); err != nil {
			s.SlowDown(request.Context())
			return err
		}
		weight := op.weight()
		if err := s.inFlight.Enter(c.scope, weight); err != nil {
			return err
		}
		defer s.inFlight.Leave(c.scope, weight)
		if r.catalog {
			if err := s.catalogs.Enter(c.scope.OrgID, 1); err != nil {
				return err
			}
			defer s.catalogs.Leave(c.scope.OrgID, 1)
		}
		out, err := s.dispatch(c, op, request)
		if err != nil {
			return err
		}
		if out.stream != nil {
			c.header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
			return httpd.Stream(ec, out.stream)
		}
		if r.method == http.MethodGet { // what a refused client reads again, and has not changed
			return httpd.WriteCountedJSON(ec, out.status, out.body, s.unsent, c.scope.AppID)
		}
		return httpd.WriteJSON(ec, out.status, out.body)
	}
}

// weight is what a request counts for among those in flight: a body of many times the
// usual size counts as many.
func (op *operation) weight() int64 { return int64(max(1, op.maxBody/maxBody)) }

// extend moves the deadline by the time that the body took to arrive, so that a slow
// sender does not look like a slow database. No request exceeds maxRequest.
func (c *call) extend(took time.Duration) context.CancelFunc {
	deadline, _ := c.ctx.Deadline()
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithDeadline(context.WithoutCancel(c.ctx), deadline.Add(max(0, min(took, maxRequest-c.route.timeout()))))
	return cancel
}

// SlowDown delays a refusal: a client that repeats refused requests without a pause
// would keep the server busy.
func (s *Server) SlowDown(ctx context.Context) {
	defer s.delayed.Add(-1)
	waiting := s.delayed.Add(1)
	if waiting > maxDelayed {
		return
	}
	// Jitter: refusals sent together would be retried together.
	delay := refusalDelayAt(waiting)
	timer := time.NewTimer(delay/2 + rand.N(delay))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// refusalDelayAt is the mean delay of a refusal while this many wait. It grows with
// their number and stays below the second that Retry-After gives.
func refusalDelayAt(waiting int64) time.Duration {
	return min(refusalDelay+refusalDelay*time.Duration(waiting)/refusalsPerDelay, maxRefusalDelay)
}

func (r route) timeout() time.Duration {
	switch {
	case r.usage:
		return usageTimeout
	case r.streamed:
		return exportTimeout
	}
	return requestTimeout
}

func (s *Server) dispatch(c *call, op *operation, r *http.Request) (reply, error) {
	admit := s.authenticate
	if c.route.usage {
		admit = s.authenticateCached
	}
	err := admit(c)
	c.record.App, c.record.Key = c.scope.AppID, c.key.ID
	c.authenticated = err == nil || fault.Is(err, fault.PermissionDenied)
	if err != nil {
		return reply{}, err
	}
	begun := httpd.SinceStart()
	err = c.read(op, r)
	if took := httpd.SinceStart() - begun; took > slowBody {
		cancel := c.extend(took)
		defer cancel()
		if err == nil && !c.route.usage { // usage compares the key in its transaction
			err = s.authenticateAgain(c.ctx, c)
		}
	}
	if err != nil {
		return reply{}, s.reauthenticate(c, err)
	}
	if err := s.applyClockOffset(c); err != nil {
		return reply{}, err
	}
	answer, err := c.route.handle(c)
	return answer, c.archivedKeyError(err)
}

// archivedKeyError answers a request whose application was archived meanwhile as later ones
// are answered, by their key. Other errors stay.
func (c *call) archivedKeyError(err error) error {
	if err == nil || !fault.Is(err, fault.Archived) {
		return err
	}
	key := c.key
	key.Revoked, key.Archived = true, true
	return key.Usable(c.now)
}

// applyClockOffset moves the time of a write to the application's clock, which differs
// only for test applications whose sandbox clock was advanced. Usage gets its time in
// its own transaction.
func (s *Server) applyClockOffset(c *call) error {
	if c.route.method == http.MethodGet || c.route.usage || c.key.Live {
		return nil
	}
	offset, err := s.store.App(c.scope).ClockOffset(c.ctx)
	c.now, c.clockOffset = c.now+offset, offset
	return err
}

// read parses the path, query and body and validates them against the document.
func (c *call) read(op *operation, r *http.Request) (err error) {
	if err = op.checkPath(c.path); err != nil {
		return err
	}
	if c.query, err = op.readQuery(r.URL.RawQuery); err != nil || op.body == nil {
		return err
	}
	if err = checkMedia(r.Header); err != nil {
		return err
	}
	body, err := readBody(r, op.maxBody)
	if err != nil {
		return err
	}
	c.body, err = op.validateBody(r.Header, body)
	return err
}

// checkMedia refuses a body that is not plain JSON.
func checkMedia(header http.Header) error {
	if header.Get("Content-Type") == "application/json" && header.Get("Content-Encoding") == "" {
		return nil // as almost all clients send it
	}
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || media != "application/json" || (charset != "" && !strings.EqualFold(charset, "utf-8")) ||
		header.Get("Content-Encoding") != "" {
		return fault.New(fault.UnsupportedMedia)
	}
	return nil
}

// readBody reads at most limit bytes and one more: the extra byte shows that the body is
// longer.
func readBody(r *http.Request, limit int) ([]byte, error) {
	if r.ContentLength > int64(limit) {
		return nil, fault.New(fault.BodyTooLarge)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, invalid("The body is incomplete: the connection ended or timed out.")
	}
	if len(body) > limit {
		return nil, fault.New(fault.BodyTooLarge)
	}
	return body, nil
}

// pathParameters decodes each path parameter exactly once.
func pathParameters(ec echo.Context) (map[string]string, error) {
	if len(ec.ParamNames()) == 0 {
		return nil, nil
	}
	params := make(map[string]string, len(ec.ParamNames()))
	for i, name := range ec.ParamNames() {
		raw := ec.ParamValues()[i]
		if raw == "" || strings.Contains(raw, "/") {
			return nil, fault.New(fault.PathNotFound)
		}
		text, err := url.PathUnescape(raw)
		if err != nil {
			return nil, invalid("The path has invalid percent-encoding.")
		}
		params[name] = text
	}
	return params, nil
}
