package sandbox

import (
	"slices"

	"purser/payments/sandbox/engine"
)

func getAccount(c *call) (engine.Doc, error) {
	return c.account.RenderAccount(), c.params.Problem()
}

// maxListedTypes is how many types of events one list may name: Stripe's documentation
// of the parameter says so, and its API refuses more.
const maxListedTypes = 20

func listEvents(c *call) (engine.Doc, error) {
	kind, kinds, within, delivered := c.params.Text("type"), c.params.Texts("types"), c.timeRange("created"), c.params.Bool("delivery_success")
	if len(kinds) > maxListedTypes {
		return nil, badRequest("types", "You may list at most 20 types of events.")
	}
	return list(c, c.account.Events, engine.Filter[engine.Event]{Keep: func(e *engine.Event) bool {
		return matches(kind, e.Type) && (len(kinds) == 0 || slices.Contains(kinds, e.Type)) && within.Contains(e.Created) &&
			(delivered == nil || *delivered == c.account.IsDelivered(e))
	}})
}

func (s *Server) createEndpoint(c *call) (engine.Doc, error) {
	p := engine.NewEndpoint{
		URL: c.params.Text("url"), Types: c.params.Texts("enabled_events"), Description: c.params.Text("description"), Metadata: c.params.Pairs("metadata"), Outside: !s.isOwn(c.params.Text("url")),
	}
	c.params.Text("api_version") // ignored: there is one version
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	if err := s.checkEndpointURL(p.URL); err != nil {
		return nil, err
	}
	endpoint, err := c.account.CreateEndpoint(c.env, p)
	if err != nil {
		return nil, err
	}
	doc := c.account.Render(endpoint)
	// Shown on creation only.
	doc["secret"] = s.signingSecret(endpoint.Outside, endpoint.Secret)
	return doc, nil
}

func deleteEndpoint(c *call) (engine.Doc, error) {
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	return c.account.DeleteEndpoint(c.id())
}

func listEndpoints(c *call) (engine.Doc, error) {
	return list(c, c.account.EndpointTable(), engine.Filter[engine.Endpoint]{})
}

// createTestClock creates a test clock and moves the account's clock to its frozen
// time.
func (s *Server) createTestClock(c *call) (engine.Doc, error) {
	name, at := c.params.Text("name"), c.params.Int("frozen_time")
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	if at == nil {
		return nil, badRequest("frozen_time", "Missing required param: frozen_time.")
	}
	if err := engine.CheckFrozen(c.env, engine.Time(*at)); err != nil {
		return nil, err
	}
	if engine.Time(*at) > c.env.Now {
		if err := s.advance(c, *at); err != nil {
			return nil, err
		}
	}
	return c.account.Render(c.account.CreateTestClock(c.env, name)), nil
}

// advanceTestClock moves the account's clock as Stripe does: timers on the way fire at
// their own time, and their webhooks are sent afterwards.
func (s *Server) advanceTestClock(c *call) (engine.Doc, error) {
	to := c.params.Int("frozen_time")
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	clock, err := engine.Get(c.account.TestClocks, "test clock", c.id())
	if err != nil {
		return nil, err
	}
	if to == nil {
		return nil, badRequest("frozen_time", "Missing required param: frozen_time.")
	}
	if err := s.advance(c, *to); err != nil {
		return nil, err
	}
	clock.Frozen = c.env.Now
	return c.account.Render(clock), nil
}

func (s *Server) advance(c *call, to int64) error {
	if err := c.account.CheckAdvance(c.env, engine.Time(to)); err != nil {
		return err
	}
	c.account.MoveClock(s.realNow(), to*1000)
	c.env.Now = engine.Time(to)
	c.account.Fire(c.env)
	return nil
}
