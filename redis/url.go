package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ParseURL reads Options from a URL of one of the forms
//
//	redis://[[user][:password]@]host[:port][/db][?query]
//	rediss://... the same over TLS
//	unix://[[user][:password]@]/path/of/socket[?query]
//
// where the query may have db, protocol, client_name and dial_timeout (a Go duration). What is not understood is
// an error. Errors never quote the URL, which may hold a password.
func ParseURL(s string) (Options, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Options{}, errors.New("redis: URL cannot be parsed")
	}
	o := Options{Username: u.User.Username()}
	o.Password, _ = u.User.Password()
	var db string
	switch u.Scheme {
	case "redis", "rediss":
		if u.Hostname() == "" {
			return Options{}, errors.New("redis: URL has no host")
		}
		o.Network, o.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmpOr(u.Port(), "6379"))
		if u.Scheme == "rediss" {
			o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
		}
		db = strings.Trim(u.Path, "/")
	case "unix":
		if u.Host != "" || u.Path == "" {
			return Options{}, errors.New("redis: URL of a socket must have an absolute path and no host")
		}
		o.Network, o.Addr = "unix", u.Path
	default:
		return Options{}, errors.New("redis: URL scheme must be redis, rediss or unix")
	}
	if u.Fragment != "" || u.Opaque != "" {
		return Options{}, errors.New("redis: URL has parts behind a # or without //")
	}
	if err := o.query(u.RawQuery, db); err != nil {
		return Options{}, err
	}
	return o, o.Validate()
}

// query applies the query of a URL; db is the database that the path named.
func (o *Options) query(raw, db string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return errors.New("redis: URL query cannot be parsed")
	}
	var faults []error
	number := func(name, text string, into *int) {
		n, err := strconv.Atoi(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("redis: URL: %s is not a number", name))
		}
		*into = n
	}
	if db != "" {
		number("the path", db, &o.DB)
	}
	for name, values := range q {
		value := values[0]
		if len(values) > 1 || name == "db" && db != "" {
			faults = append(faults, errors.New("redis: URL: a parameter is given twice"))
		}
		switch name {
		case "db":
			number(name, value, &o.DB)
		case "protocol":
			number(name, value, &o.Protocol)
		case "client_name":
			o.ClientName = value
		case "dial_timeout":
			if o.DialTimeout, err = time.ParseDuration(value); err != nil {
				faults = append(faults, errors.New("redis: URL: dial_timeout is not a duration"))
			}
		default:
			faults = append(faults, errors.New("redis: URL: unknown parameter; known are db, protocol, client_name and dial_timeout"))
		}
	}
	return errors.Join(faults...)
}
