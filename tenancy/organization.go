package tenancy

import (
	"net/url"
	"strconv"
	"strings"

	"purser/fault"
	"purser/ids"
)

// Scope is what one request may touch: one application of one organization.
type Scope struct {
	OrgID ids.ID
	AppID ids.ID
}

// Organization is a customer of the service: it has members and applications.
type Organization struct {
	ID        ids.ID
	Slug      string
	Name      string
	CreatedAt int64
	// RequiresFactor lets members act only with an authenticator.
	RequiresFactor bool
	ArchivedAt     int64 // 0 for one that is active
}

// NewOrganization makes an organization. Its slug is a proposal: when it is
// taken, the store tries NumberedSlug.
func NewOrganization(id ids.ID, name string, now int64) (Organization, error) {
	name, err := ParseName(name)
	if err != nil {
		return Organization{}, err
	}
	return Organization{ID: id, Slug: slugOf(name, "organization"), Name: name, CreatedAt: now}, nil
}

// Rename gives the organization another name. The slug stays, so links hold.
func (o Organization) Rename(name string) (Organization, error) {
	name, err := ParseName(name)
	if err != nil {
		return Organization{}, err
	}
	o.Name = name
	return o, nil
}

// Version tells the name of an organization from what it was before a change.
func (o Organization) Version() string { return strconv.Quote(o.Name) }

// Application keeps its own catalog, wallets and keys. Whether it is live is
// decided once: its keys say so in their prefix, and its balances are real.
type Application struct {
	ID            ids.ID
	OrgID         ids.ID
	Slug          string // unique within the organization
	Name          string
	Live          bool
	DeploymentURL string // empty when it has none
	CreatedAt     int64
	ArchivedAt    int64 // 0 for one that is active
}

// NewApplication makes an application of the organization. As with the
// organization's own, the slug is a proposal.
func NewApplication(id ids.ID, org Organization, name string, live bool, now int64) (Application, error) {
	name, err := ParseName(name)
	if err != nil {
		return Application{}, err
	}
	return Application{
		ID:        id,
		OrgID:     org.ID,
		Slug:      slugOf(name, "application"),
		Name:      name,
		Live:      live,
		CreatedAt: now,
	}, nil
}

// Scope is the scope of a request to this application.
func (a Application) Scope() Scope {
	return Scope{OrgID: a.OrgID, AppID: a.ID}
}

// Change gives the application another name and deployment address. The slug
// stays, so links hold.
func (a Application) Change(name, deploymentURL string) (Application, error) {
	name, err := ParseName(name)
	if err != nil {
		return Application{}, err
	}
	if err := checkDeploymentURL(deploymentURL); err != nil {
		return Application{}, err
	}
	a.Name, a.DeploymentURL = name, deploymentURL
	return a, nil
}

// Version tells the settings of an application from what they were before a change.
func (a Application) Version() string { return strconv.Quote(a.Name) + " " + a.DeploymentURL }

const maxURLLength = 2048

// The address is shown as a link, so it is one of the web's (not javascript:)
// and holds no password; the API promises a URI, so its characters are a URI's.
func checkDeploymentURL(text string) error {
	if text == "" {
		return nil
	}
	address, err := url.Parse(text)
	if err != nil || len(text) > maxURLLength || strings.ContainsFunc(text, notInURI) ||
		address.User != nil || address.Hostname() == "" ||
		(address.Scheme != "https" && address.Scheme != "http") {
		return fault.Newf(fault.InvalidRequest,
			"The deployment URL must be a web address such as https://example.com, at most %d characters long.", maxURLLength)
	}
	return nil
}

func notInURI(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r)
}
