package images

import (
	"net/http"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/wbox-dev/wbox/builder/report"
)

// DefaultJobs is how many requests are in flight at once.
const DefaultJobs = 16

// DefaultBudget is how long registries are waited for, all pauses together.
const DefaultBudget = 5 * time.Minute

// ClientOptions are what a Client works with.
type ClientOptions struct {
	Keychain  authn.Keychain    // Optional: credentials; default DefaultKeychain
	Transport http.RoundTripper // Optional: below retries and credentials; default NewTransport
	PlainHTTP []string          // Optional: registries ("HOST[:PORT]") that have no TLS. Loopback ones are found out
	Budget    time.Duration     // Optional: how long registries may be waited for, all pauses together; default DefaultBudget
	Pause     time.Duration     // Optional: the first pause where a server wishes for none; default 1 s, doubled each time
	Jobs      int               // Optional: requests in flight at once; default DefaultJobs
	Cache     Cache             // Optional: default NoCache
	Sink      report.Sink       // Optional: default report.Discard
	Agent     string            // Optional: the User-Agent; default "wbox"
}

// Client talks to registries. It asks for credentials only where a registry
// wants some, waits as long as a busy registry asks it to within its budget,
// and knows what it has uploaded. It is safe for concurrent use. Its errors
// are *fault.Problem where the user can mend them.
type Client struct {
	opts  ClientOptions
	base  http.RoundTripper // with patience
	slots chan struct{}     // one a piece of work that talks to registries

	mu    sync.Mutex
	conns map[string]*conn // by registry
	homes homes

	cacheWarning sync.Once
}

// NewClient returns a Client.
func NewClient(o ClientOptions) *Client {
	if o.Keychain == nil {
		o.Keychain = DefaultKeychain("")
	}
	if o.Jobs <= 0 {
		o.Jobs = DefaultJobs
	}
	if o.Transport == nil {
		o.Transport = NewTransport(nil, nil, o.Jobs)
	}
	if o.Budget <= 0 {
		o.Budget = DefaultBudget
	}
	if o.Pause <= 0 {
		o.Pause = time.Second
	}
	if o.Cache == nil {
		o.Cache = NoCache()
	}
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	if o.Agent == "" {
		o.Agent = "wbox"
	}
	return &Client{
		opts:  o,
		base:  newPatience(o),
		slots: make(chan struct{}, o.Jobs),
		conns: map[string]*conn{},
		homes: homes{known: map[place][]string{}, uploads: map[place]*upload{}},
	}
}
