package target

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
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

func parseSpec(text string) (s spec, err error) {
	s.scheme, _, _ = strings.Cut(text, ":")
	switch s.scheme {
	case "embedded":
		if text != "embedded:" {
			return s, fmt.Errorf("target %q: nothing may follow embedded:", text)
		}
		return s, nil
	case "redis", "rediss", "beanstalk", "beanstalkd":
	default:
		return s, fmt.Errorf("target %q: want embedded:, redis://host:port/db?stream=NAME, redis://host:port/db?list=NAME or beanstalk://host:port/TUBE", Redact(text))
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own words quote the text, and with it a password.
		return s, errors.New("target: cannot be parsed as a URL; a / # ? or @ in a password must be percent-encoded")
	}
	s.url = *u
	if s.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return s, fmt.Errorf("target: query: %w", err)
	}
	if strings.HasPrefix(s.scheme, "redis") {
		s.scheme, err = "redis", s.parseRedis()
	} else {
		s.scheme, err = "beanstalk", s.parseBeanstalk()
	}
	if err != nil {
		return s, fmt.Errorf("target: %w", err)
	}
	return s, nil
}

// take returns a parameter and takes it out of the query.
func (s *spec) take(name string) (value string, ok bool, err error) {
	values := s.query[name]
	s.query.Del(name)
	switch {
	case len(values) > 1:
		return "", false, fmt.Errorf("%s is given twice", name)
	case len(values) == 1 && values[0] == "":
		return "", false, fmt.Errorf("%s has no value", name)
	}
	return strings.Join(values, ""), len(values) == 1, nil
}

func (s *spec) parseRedis() error {
	stream, isStream, err1 := s.take("stream")
	list, isList, err2 := s.take("list")
	err3 := s.parseBody()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	switch {
	case isStream && isList:
		return errors.New("stream and list are both given")
	case s.body != bodyPayload && !isList:
		return errors.New("body is for lists and tubes: a stream has fields")
	case isList:
		s.key, s.list = list, true
	case isStream:
		s.key = stream
	default:
		s.key = "jobs"
	}
	s.url.RawQuery = s.query.Encode()
	return nil
}

func (s *spec) parseBody() error {
	switch value, ok, err := s.take("body"); {
	case err != nil:
		return err
	case value == "job":
		s.body = bodyJob
	case ok && value != "payload":
		return fmt.Errorf("body is %q: want payload or job", value)
	}
	return nil
}

func (s *spec) parseBeanstalk() error {
	if s.url.User != nil {
		return errors.New("beanstalkd knows no users and passwords")
	}
	if s.url.Hostname() == "" {
		return errors.New("no host")
	}
	s.key = strings.TrimPrefix(s.url.Path, "/")
	if s.key == "" {
		return errors.New("no tube: want beanstalk://host:port/TUBE")
	}
	errs := []error{s.parseBody(), s.seconds("delay", &s.delay), s.seconds("ttr", &s.ttr)}
	if value, ok, err := s.take("priority"); err != nil {
		errs = append(errs, err)
	} else if ok {
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			errs = append(errs, fmt.Errorf("priority is %q: want 0 to %d", value, uint32(math.MaxUint32)))
		}
		s.priority = uint32(n)
	}
	for name := range s.query {
		errs = append(errs, fmt.Errorf("unknown parameter %s; known are body, priority, delay and ttr", name))
	}
	return errors.Join(errs...)
}

// seconds reads a duration that the server counts in seconds.
func (s *spec) seconds(name string, into *time.Duration) error {
	value, ok, err := s.take(name)
	if err != nil || !ok {
		return err
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > math.MaxUint32*time.Second {
		return fmt.Errorf("%s is %q: want a duration such as 90s", name, value)
	}
	*into = d
	return nil
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
