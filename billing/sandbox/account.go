package sandbox

import (
	"slices"

	"purser/billing/sandbox/engine"
)

func getAccount(c *call) (engine.Doc, error) {
	return c.w.RenderAccount(), c.in.Problem()
}

func getEvent(c *call) (engine.Doc, error) { return get(c, c.w.Events, "event") }

func listEvents(c *call) (engine.Doc, error) {
	kind, kinds, within, delivered := c.in.Text("type"), c.in.Texts("types"), c.within("created"), c.in.Bool("delivery_success")
	return list(c, c.w.Events, engine.Filter[engine.Event]{Keep: func(e *engine.Event) bool {
		return matches(kind, e.Type) && (len(kinds) == 0 || slices.Contains(kinds, e.Type)) && within.Holds(e.Created) &&
			(delivered == nil || *delivered == c.w.IsDelivered(e))
	}})
}

func (s *Server) createEndpoint(c *call) (engine.Doc, error) {
	p := engine.NewEndpoint{
		URL: c.in.Text("url"), Types: c.in.Texts("enabled_events"), Description: c.in.Text("description"), Metadata: c.in.Pairs("metadata"), Outside: !s.isOwn(c.in.Text("url")),
	}
	c.in.Text("api_version") // events are sent in the one version that there is
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	if err := s.deliverable(p.URL); err != nil {
		return nil, err
	}
	endpoint, err := c.w.CreateEndpoint(c.m, p)
	if err != nil {
		return nil, err
	}
	doc := c.w.Render(endpoint)
	// Shown this once.
	doc["secret"] = endpoint.Secret
	return doc, nil
}

func deleteEndpoint(c *call) (engine.Doc, error) {
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	return c.w.DeleteEndpoint(c.id())
}

func listEndpoints(c *call) (engine.Doc, error) {
	return list(c, c.w.EndpointTable(), engine.Filter[engine.Endpoint]{})
}

// createTestClock names the account's clock, and moves it to the time that it is to
// start from.
func (s *Server) createTestClock(c *call) (engine.Doc, error) {
	name, at := c.in.Text("name"), c.in.Int("frozen_time")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	if at == nil {
		return nil, badRequest("frozen_time", "Missing required param: frozen_time.")
	}
	if err := engine.CheckFrozen(c.m, engine.Time(*at)); err != nil {
		return nil, err
	}
	if engine.Time(*at) > c.m.Now {
		if err := c.w.CheckAdvance(c.m, engine.Time(*at)); err != nil {
			return nil, err
		}
		c.w.MoveClock(s.realNow(), *at*1000)
		c.m.Now = engine.Time(*at)
		c.w.Fire(c.m)
	}
	clock, err := c.w.CreateTestClock(c.m, name)
	return show(c, clock, err)
}

func getTestClock(c *call) (engine.Doc, error) {
	return get(c, c.w.TestClocks, "test clock")
}

// advanceTestClock moves the world's clock as Stripe does: everything on the way
// happens at its instant, and the webhooks of all of it follow.
func (s *Server) advanceTestClock(c *call) (engine.Doc, error) {
	to := c.in.Int("frozen_time")
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	clock, err := engine.Get(c.w.TestClocks, "test clock", c.id())
	if err != nil {
		return nil, err
	}
	if to == nil {
		return nil, badRequest("frozen_time", "Missing required param: frozen_time.")
	}
	if err := c.w.CheckAdvance(c.m, engine.Time(*to)); err != nil {
		return nil, err
	}
	c.w.MoveClock(s.realNow(), *to*1000)
	c.m.Now = engine.Time(*to)
	c.w.Fire(c.m)
	clock.Frozen = c.m.Now
	return c.w.Render(clock), nil
}
