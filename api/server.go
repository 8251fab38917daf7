package api

import (
	"cmp"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"

	"purser/httpd"
	"purser/ids"
	"purser/notify/delivery"
	"purser/payments/cashier"
	"purser/store"
	"purser/tenancy"
)

const (
	// requestTimeout bounds one request, waiting for the database included.
	requestTimeout = 15 * time.Second
	// usageTimeout bounds an event or a check: authentication, queue and transaction
	// together.
	usageTimeout = 10 * time.Second
	// maxRequest bounds a request with a slow body. Shutdown waits that long.
	maxRequest = 20 * time.Second
	// slowBody is how long a body may take before the deadline is extended.
	slowBody = 100 * time.Millisecond
	// refusalDelay is the mean delay of a rate-limited response. It grows by itself for
	// every refusalsPerDelay waiting, up to maxRefusalDelay. At most maxDelayed wait;
	// others are refused at once.
	refusalDelay       = 400 * time.Millisecond
	maxRefusalDelay    = time.Second
	refusalsPerDelay   = 128
	maxDelayed         = 4096
	defaultMaxInFlight = 4096
	// catalogsAtOnce bounds the catalogs that are read, compared or applied, of which an
	// organization gets half: one of 1 MiB can hold 37,000 objects, 13 MiB in memory.
	catalogsAtOnce = 16
	// maxUnsent bounds the memory of replies to reads whose clients read slowly, of which an
	// application gets half.
	maxUnsent = 64 << 20
)

// Options configures a Server. All but the first four fields have defaults.
type Options struct {
	Store   *store.Store
	Usage   *store.Engine
	Cashier *cashier.Cashier
	// Deliveries sends notifications to webhook endpoints.
	Deliveries *delivery.Dispatcher
	// Now is the clock, in milliseconds since 1970; the database's if nil.
	Now func() int64
	// CursorKey authenticates cursors. Nodes on one database share it.
	CursorKey []byte
	// RateLimit is the requests per second of one key, with a burst of twice that. Zero
	// means no limit.
	RateLimit float64
	// MaxInFlight is the limit of concurrent requests; 4096 if zero.
	MaxInFlight int
	// MaxExports is the limit of concurrent exports, of which an application gets half; 2 if
	// zero.
	MaxExports int
	// MaxUnsent is the limit of bytes of replies to reads that are not sent yet, of which an
	// application gets half; 64 MiB if zero.
	MaxUnsent int64
	// BaseURL is the public URL in the served document; "/" if empty.
	BaseURL string
	// Lookups bounds lookups of keys that the node has not found before, with those of the
	// dashboard; the API has its own if nil.
	Lookups *httpd.Lookups
	// NetworkOf returns the client network of a request. If nil, all share one.
	NetworkOf func(*http.Request) netip.Prefix
}

// Server serves the /v1 API.
type Server struct {
	store      *store.Store
	usage      *store.Engine
	cashier    *cashier.Cashier
	keys       *keyCache
	lookups    *httpd.Lookups
	networkOf  func(*http.Request) netip.Prefix
	now        func() int64
	document   *document
	cursors    cursors
	limits     *keyLimits
	inFlight   *httpd.InFlight[tenancy.Scope]
	deliveries *delivery.Dispatcher
	waiting    *httpd.InFlight[tenancy.Scope] // for notifications
	stopped    chan struct{}                  // closed by StopWaiting
	stopOnce   sync.Once
	delayed    atomic.Int64            // refusals waiting in SlowDown
	exports    *httpd.InFlight[ids.ID] // by organization
	catalogs   *httpd.InFlight[ids.ID] // by organization
	unsent     *httpd.InFlight[ids.ID] // bytes, by application
}

// New compiles the OpenAPI document and creates the server.
func New(o Options) (*Server, error) {
	doc, err := loadDocument(o.BaseURL)
	if err != nil {
		return nil, err
	}
	cached, err := lru.New[keyName, cachedKey](cachedKeys)
	if err != nil {
		return nil, err
	}
	o.MaxInFlight = cmp.Or(o.MaxInFlight, defaultMaxInFlight)
	if o.NetworkOf == nil {
		o.NetworkOf = func(*http.Request) netip.Prefix { return netip.Prefix{} }
	}
	if o.Lookups == nil {
		o.Lookups = httpd.NewLookups(httpd.SinceStart)
	}
	if o.Now == nil {
		o.Now = func() int64 { return o.Store.Clock().Now() }
	}
	return &Server{
		store:      o.Store,
		usage:      o.Usage,
		cashier:    o.Cashier,
		keys:       cached,
		lookups:    o.Lookups,
		networkOf:  o.NetworkOf,
		now:        o.Now,
		document:   doc,
		cursors:    cursors{key: o.CursorKey},
		limits:     newKeyLimits(o.RateLimit, httpd.SinceStart),
		inFlight:   httpd.NewGroupsInFlight(int64(o.MaxInFlight), organizationOf),
		deliveries: o.Deliveries,
		waiting:    httpd.NewGroupsInFlight(2*maxWaiting, organizationOf),
		stopped:    make(chan struct{}),
		exports:    httpd.NewInFlight[ids.ID](int64(cmp.Or(o.MaxExports, exportsAtOnce))),
		catalogs:   httpd.NewInFlight[ids.ID](catalogsAtOnce),
		unsent:     httpd.NewInFlight[ids.ID](cmp.Or(o.MaxUnsent, maxUnsent)),
	}, nil
}

// organizationOf groups the applications of an organization among the owners of requests.
func organizationOf(app tenancy.Scope) tenancy.Scope { return tenancy.Scope{OrgID: app.OrgID} }

// NetworkOf is the client network of a request.
func (s *Server) NetworkOf(r *http.Request) netip.Prefix { return s.networkOf(r) }

// Register mounts the routes of the API.
func (s *Server) Register(e *echo.Echo) {
	e.Match(httpd.MethodsOf(http.MethodGet), "/v1/openapi.json", s.getOpenapi)
	for _, r := range s.routes() {
		e.Match(httpd.MethodsOf(r.method), httpd.EchoPath(r.path), s.serve(r, s.document.operation(r.method, r.path)))
	}
}
