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
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
)

// call is one request on its way: what is known of it so far.
type call struct {
	ctx      context.Context
	id       ids.ID // of the request
	route    route
	request  *http.Request
	keyID    ids.ID
	key      keys.APIKey
	presumed bool          // the key is as it was a moment ago
	admitted bool          // the key works, whatever it may do
	scope    tenancy.Scope // the key's, and nothing else's
	path     map[string]string
	query    input
	body     input
	now      int64 // by the application's clock
	ahead    int64 // of the server's
}

// serve takes a request through the gates, in the order in which it is refused,
// and then to its handler.
func (s *Server) serve(r route, op *operation) echo.HandlerFunc {
	return func(ec echo.Context) error {
		request := ec.Request()
		ctx, cancel := detach(request.Context(), r.timeout())
		defer cancel()
		c := &call{ctx: ctx, route: r, request: request, id: requestOf(ec)}
		ec.Set(callKey, c)
		var err error
		if c.path, err = pathParameters(ec); err != nil {
			return err
		}
		if err := s.store.Clock().Trust(ctx); err != nil {
			return err
		}
		c.now = s.now()
		if err := s.address(c, request); err != nil {
			return err
		}
		// Before anything that costs database work.
		if err := s.limits.take(c.keyName(), ec.Response().Header()); err != nil {
			s.SlowDown(request.Context())
			return err
		}
		if err := s.inFlight.enter(c.scope.AppID, 1); err != nil {
			return err
		}
		defer s.inFlight.leave(c.scope.AppID, 1)
		out, err := s.answer(c, op, request)
		if err != nil {
			return err
		}
		return writeJSON(ec, out.status, out.body)
	}
}

// detach gives a request a deadline of its own. A caller that hangs up does not
// cancel its queries: pgx closes the connection of a cancelled query, so callers
// that hang up could use up the pool.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// extend moves the deadline by the time that the body took to arrive: a slow sender
// must not look like a slow database. It is bounded, so that no request outlasts
// maxRequest.
func (c *call) extend(took time.Duration) context.CancelFunc {
	deadline, _ := c.ctx.Deadline()
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithDeadline(context.WithoutCancel(c.ctx), deadline.Add(min(took, maxRequest-c.route.timeout())))
	return cancel
}

// SlowDown delays a refusal. A client that repeats refused requests at once would
// otherwise keep the server busy with refusing them.
func (s *Server) SlowDown(ctx context.Context) {
	defer s.delayed.Add(-1)
	waiting := s.delayed.Add(1)
	if waiting > maxDelayed {
		return
	}
	// Not all of them at once: they would also come back at once.
	delay := refusalDelayBeside(waiting)
	timer := time.NewTimer(delay/2 + rand.N(delay))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// refusalDelayBeside is the mean delay of a refusal while this number of them wait. It
// grows with the flood, and stays below the second that Retry-After asks for.
func refusalDelayBeside(waiting int64) time.Duration {
	return min(refusalDelay+refusalDelay*time.Duration(waiting)/refusalsPerDelay, maxRefusalDelay)
}

// timeout is how long a request of the route may take.
func (r route) timeout() time.Duration {
	if r.batched {
		return batchedTimeout
	}
	return requestTimeout
}

func (s *Server) answer(c *call, op *operation, r *http.Request) (reply, error) {
	admit := s.authenticate
	if c.route.batched {
		admit = s.presume
	}
	err := admit(c)
	c.admitted = err == nil || fault.Is(err, fault.PermissionDenied)
	if err != nil {
		return reply{}, err
	}
	begun := sinceStart()
	err = c.read(op, r)
	if took := sinceStart() - begun; took > slowBody {
		cancel := c.extend(took)
		defer cancel()
	}
	if err != nil {
		return reply{}, s.confirm(c, err)
	}
	if err := s.keepTime(c); err != nil {
		return reply{}, err
	}
	return c.route.handle(c)
}

// keepTime puts what is about to be written on the application's own clock, which
// is ahead where somebody moved its sandbox in time, and there only: nothing live
// has one. Uses are dated in their own transaction.
func (s *Server) keepTime(c *call) error {
	if c.route.method == http.MethodGet || c.route.batched || c.key.Live {
		return nil
	}
	ahead, err := s.store.App(c.scope).ClockOffset(c.ctx)
	c.now, c.ahead = c.now+ahead, ahead
	return err
}

// read takes in what the request says, checked against the document.
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
	body, err := readBody(r)
	if err != nil {
		return err
	}
	c.body, err = op.readBody(r.Header, body)
	return err
}

// checkMedia refuses a body that is not plain JSON.
func checkMedia(header http.Header) error {
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || media != "application/json" || (charset != "" && !strings.EqualFold(charset, "utf-8")) ||
		header.Get("Content-Encoding") != "" {
		return fault.New(fault.UnsupportedMedia)
	}
	return nil
}

// readBody reads at most the limit and one byte, by which a longer body shows.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, fault.New(fault.BodyTooLarge)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, invalid("The body did not arrive whole.")
	}
	if len(body) > maxBody {
		return nil, fault.New(fault.BodyTooLarge)
	}
	return body, nil
}

// routeByEscapedPath makes echo match the path as it was sent. Go decodes it as
// well, but only keeps the original when it has to: a handler could not tell
// whether a '%' is still to be decoded, and a second decoding is another wallet.
// What Go keeps is not encoded anew: beside a character that was sent raw, a %2F
// would become a slash.
func routeByEscapedPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		target := ec.Request().URL
		if target.RawPath == "" {
			target.RawPath = target.EscapedPath()
		}
		return next(ec)
	}
}

// pathParameters decodes each parameter of the path, this once.
func pathParameters(ec echo.Context) (map[string]string, error) {
	params := make(map[string]string, len(ec.ParamNames()))
	for i, name := range ec.ParamNames() {
		raw := ec.ParamValues()[i]
		if raw == "" || strings.Contains(raw, "/") {
			return nil, fault.New(fault.PathNotFound)
		}
		text, err := url.PathUnescape(raw)
		if err != nil {
			return nil, invalid("The path is not percent-encoded as it should be.")
		}
		params[name] = text
	}
	return params, nil
}

// echoPath writes {name} as echo does.
func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
