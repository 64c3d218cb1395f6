package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseURL reads Options from a URL of one of the forms
//
//	redis://[[user]:password@]host[:port][/db][?query]
//	rediss://... the same over TLS; valkey:// and valkeys:// mean the same
//	unix://[[user]:password@]/path/of/socket[?query]
//
// A missing host is localhost, a missing port 6379. One word before the @, without a colon, is a password, as
// redis-cli reads it. The query may have
//
//	db, protocol, client_name          as the fields of Options
//	skip_verify=true                   with TLS: the certificate is not checked
//	dial_timeout, read_timeout, write_timeout, conn_max_lifetime,
//	min_retry_backoff, max_retry_backoff
//	                                   a Go duration, or a number of seconds; negative = none, the backoffs excepted
//	max_retries                        Engine.Budget; 0 is the default, negative = none
//	pool_size                          Lent
//
// What is not understood is an error. Errors never quote the URL, which may hold a password.
func ParseURL(s string) (Options, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Options{}, errors.New("redis: URL cannot be parsed")
	}
	var o Options
	if password, both := u.User.Password(); both {
		o.Username, o.Password = u.User.Username(), password
	} else {
		o.Password = u.User.Username()
	}
	var db string
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
		host := cmpOr(u.Hostname(), "localhost")
		o.Network, o.Addr = "tcp", net.JoinHostPort(host, cmpOr(u.Port(), "6379"))
		if strings.HasSuffix(u.Scheme, "s") && u.Scheme != "redis" {
			o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
		}
		db = strings.Trim(u.Path, "/")
	case "unix":
		if u.Host != "" || u.Path == "" {
			return Options{}, errors.New("redis: URL of a socket must have an absolute path and no host")
		}
		o.Network, o.Addr = "unix", u.Path
	default:
		return Options{}, errors.New("redis: URL scheme must be redis, rediss, valkey, valkeys or unix")
	}
	if u.Fragment != "" || u.Opaque != "" {
		return Options{}, errors.New("redis: URL has parts behind a # or without //")
	}
	if !strings.HasPrefix(s[len(u.Scheme)+1:], "//") {
		return Options{}, errors.New("redis: URL must have // behind its scheme")
	}
	if err := o.query(u.RawQuery, db); err != nil {
		return Options{}, err
	}
	return o, o.Validate()
}

// urlNames are the parameters that a query may have.
var urlNames = [...]string{
	"client_name", "conn_max_lifetime", "db", "dial_timeout", "max_retries", "max_retry_backoff", "min_retry_backoff", "pool_size",
	"protocol", "read_timeout", "skip_verify", "write_timeout",
}

// query applies the query of a URL; db is the database that the path named.
func (o *Options) query(raw, db string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New("redis: URL query cannot be parsed")
	}
	p := params{values: q}
	if db != "" {
		if q.Has("db") {
			p.fault("the database is given twice")
		}
		q.Set("db", db)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(urlNames[:], name) {
			p.fault(unknownName(name) + "; known are " + strings.Join(urlNames[:], ", "))
		} else if len(q[name]) > 1 {
			p.fault(name + " is given twice")
		}
	}
	o.ClientName = q.Get("client_name")
	o.DB = p.number("db")
	o.Protocol = p.number("protocol")
	o.Lent = p.number("pool_size")
	o.Engine.Budget = p.number("max_retries")
	o.DialTimeout = p.span("dial_timeout")
	o.MaxAge = p.span("conn_max_lifetime")
	o.Engine.ReadTimeout = p.span("read_timeout")
	o.Engine.WriteTimeout = p.span("write_timeout")
	o.Engine.BackoffMin = p.span("min_retry_backoff")
	o.Engine.BackoffMax = p.span("max_retry_backoff")
	if p.yes("skip_verify") {
		if o.TLS == nil {
			p.fault("skip_verify without TLS")
		} else {
			o.TLS.InsecureSkipVerify = true
		}
	}
	return errors.Join(p.faults...)
}

// unknownName names a parameter that is none, unless it does not look like one: it may be a piece of a password.
func unknownName(name string) string {
	odd := func(c rune) bool { return c != '_' && c != '-' && (c < 'a' || c > 'z') }
	if len(name) > 32 || strings.ContainsFunc(name, odd) {
		return "unknown parameter"
	}
	return "unknown parameter " + name
}

// params reads the values of a query and collects what is wrong with them, by their names only.
type params struct {
	values url.Values
	faults []error
}

func (p *params) fault(what string) { p.faults = append(p.faults, fmt.Errorf("redis: URL: %s", what)) }

func (p *params) number(name string) int {
	text := p.values.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		p.fault(name + " is not a number")
	}
	return n
}

func (p *params) span(name string) time.Duration {
	text := p.values.Get(name)
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		p.fault(name + " is neither a duration nor a number of seconds")
	}
	return d
}

func (p *params) yes(name string) bool {
	text := p.values.Get(name)
	if text == "" {
		return false
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		p.fault(name + " is neither true nor false")
	}
	return b
}
