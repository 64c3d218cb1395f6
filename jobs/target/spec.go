package target

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/redis"
)

// spec is a target as the user wrote it, taken apart.
type spec struct {
	scheme string // embedded, redis or beanstalk
	url    url.URL
	query  url.Values // what is left of the query is the binding's
	key    string     // stream, list or tube
	list   bool
	body   body

	priority   uint32
	delay, ttr time.Duration
}

// parseSpec returns all faults that it finds, joined. fit says that what it returns can be checked further.
func parseSpec(text string) (s spec, fit bool, err error) {
	s.scheme, _, _ = strings.Cut(text, ":")
	switch s.scheme {
	case "embedded":
		if text != "embedded:" {
			return s, false, errors.New("nothing may follow embedded:")
		}
		return s, true, nil
	case "redis", "rediss", "beanstalk", "beanstalkd":
	default:
		return s, false, errors.New("want embedded:, redis://host:port/db?stream=NAME, redis://host:port/db?list=NAME or beanstalk://host:port/TUBE")
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own words quote the text, and with it a password.
		return s, false, errors.New("cannot be parsed as a URL; a / # ? or @ in a password must be percent-encoded, and a port is a number")
	}
	s.url = *u
	if s.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return s, false, errors.New("the part behind the ? cannot be parsed") // its words may be a password's
	}
	if strings.HasPrefix(s.scheme, "redis") {
		s.scheme, err = "redis", s.parseRedis()
	} else {
		s.scheme, err = "beanstalk", s.parseBeanstalk()
	}
	return s, true, err
}

// shown is what of a spec can be shown: neither user and password nor parameters.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.Contains(u.Path, "@") || strings.Contains(u.RawQuery, "@") {
		return ""
	}
	return " (" + u.Scheme + "://" + u.Host + u.EscapedPath() + ")" // no line end or control character of a name
}

// name is what the target is called, without user and password.
func (s *spec) name() string {
	switch {
	case s.scheme == "embedded":
		return "embedded:"
	case s.scheme == "beanstalk" && s.body == bodyJob:
		return "beanstalk://" + s.addr("11300") + "/" + s.key + "?body=job"
	case s.scheme == "beanstalk":
		return "beanstalk://" + s.addr("11300") + "/" + s.key
	}
	kind, as := "stream", ""
	if s.list {
		kind = "list"
	}
	if s.body == bodyJob {
		as = "&body=job"
	}
	db := strings.Trim(s.url.Path, "/")
	if s.query.Has("db") {
		db = s.query.Get("db")
	}
	if db == "" {
		db = "0"
	}
	return s.url.Scheme + "://" + s.addr("6379") + "/" + db + "?" + kind + "=" + url.QueryEscape(s.key) + as
}

func (s *spec) addr(port string) string {
	if p := s.url.Port(); p != "" {
		port = p
	}
	return net.JoinHostPort(s.url.Hostname(), port)
}

// check makes the binding look at what is its own.
func (s *spec) check(o Options) error {
	if s.scheme == "redis" {
		_, err := s.server(o)
		return err
	}
	return s.tubeOptions(o).Validate()
}

// server is the Redis target, not yet connected.
func (s *spec) server(o Options) (*server, error) {
	ro, err := redis.ParseURL(s.url.String())
	if err != nil {
		return nil, err
	}
	ro.Engine.MaxOutage, ro.Engine.MaxRefusals = o.MaxOutage, maxRefusals
	return &server{
		name: s.name(), options: ro, key: s.key, idsKey: s.key + ":ids", list: s.list, body: s.body,
		ids: o.IDs, retries: retries(o.Retries), patience: boundOf(o.MaxOutage),
		mark: o.markOf(s.name()),
	}, nil
}

func (s *spec) tubeOptions(o Options) beanstalkd.Options {
	bo := beanstalkd.Options{Addr: s.addr("11300"), Tube: s.key}
	bo.Engine.MaxOutage = o.MaxOutage
	return bo
}

func (s *spec) open(ctx context.Context, o Options) (Target, error) {
	switch s.scheme {
	case "embedded":
		return openEmbedded(ctx, o)
	case "redis":
		return openServer(ctx, *s, o)
	}
	return openTube(ctx, *s, o)
}
