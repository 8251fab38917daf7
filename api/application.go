package api

import "purser/ids"

type applicationReply struct {
	OrgID         string   `json:"orgId"`
	OrgSlug       *string  `json:"orgSlug"`
	AppID         string   `json:"appId"`
	Name          string   `json:"name"`
	IsLive        bool     `json:"isLive"`
	Permissions   []string `json:"permissions"`
	DeploymentURL string   `json:"deploymentUrl,omitempty"`
}

func (s *Server) getApplication(c *call) (reply, error) {
	org := s.store.Org(c.scope.OrgID)
	organization, err := org.Organization(c.ctx)
	if err != nil {
		return reply{}, err
	}
	app, err := org.Application(c.ctx, c.scope.AppID)
	if err != nil {
		return reply{}, err
	}
	return ok(applicationReply{
		OrgID:         organization.ID.Format(ids.Organization),
		OrgSlug:       &organization.Slug,
		AppID:         app.ID.Format(ids.Application),
		Name:          app.Name,
		IsLive:        app.Live,
		Permissions:   c.key.Permissions.Names(),
		DeploymentURL: app.DeploymentURL,
	}), nil
}
