package target

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redisParams are the parameters of a Redis URL that are the binding's own. Those of redis.ParseURL that would reach
// nothing here are not among them.
var redisParams = [...]string{ // never written
	"client_name", "conn_max_lifetime", "db", "dial_timeout", "max_retry_backoff", "min_retry_backoff", "protocol", "read_timeout",
	"skip_verify", "write_timeout",
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

// unknown takes what is none of the known parameters out of the query, and returns a fault for each.
func (s *spec) unknown(own string, known ...string) (faults []error) {
	odd := func(c rune) bool { return c != '_' && c != '-' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }
	for _, name := range slices.Sorted(maps.Keys(s.query)) {
		if slices.Contains(known, name) {
			continue
		}
		s.query.Del(name)
		if len(name) > 32 || strings.ContainsFunc(name, odd) {
			name = "(its name does not look like one)" // it may be a piece of a password
		}
		faults = append(faults, fmt.Errorf("unknown parameter %s; known are %s", name, strings.Join(append([]string{own}, known...), ", ")))
	}
	return faults
}

func (s *spec) parseRedis() error {
	stream, isStream, err1 := s.take("stream")
	list, isList, err2 := s.take("list")
	faults := []error{err1, err2, s.parseBody()}
	faults = append(faults, s.unknown("stream, list, body", redisParams[:]...)...)
	if isStream && isList {
		faults = append(faults, errors.New("stream and list are both given"))
	}
	if s.body != bodyPayload && !isList {
		faults = append(faults, errors.New("body is for lists and tubes: a stream has fields"))
	}
	switch {
	case isList:
		s.key, s.list = list, true
	case isStream:
		s.key = stream
	default:
		s.key = "jobs"
	}
	s.url.RawQuery = s.query.Encode()
	return errors.Join(faults...)
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
	var faults []error
	if s.url.User != nil {
		faults = append(faults, errors.New("beanstalkd knows no users and passwords"))
	}
	if s.url.Hostname() == "" {
		faults = append(faults, errors.New("no host"))
	}
	s.key = strings.TrimPrefix(s.url.Path, "/")
	if s.key == "" {
		faults = append(faults, errors.New("no tube: want beanstalk://host:port/TUBE"))
	}
	faults = append(faults, s.parseBody(), s.seconds("delay", 0, &s.delay), s.seconds("ttr", time.Second, &s.ttr))
	if value, ok, err := s.take("priority"); err != nil {
		faults = append(faults, err)
	} else if ok {
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			faults = append(faults, fmt.Errorf("priority is %q: want 0 to %d", value, uint32(math.MaxUint32)))
		}
		s.priority = uint32(n)
	}
	return errors.Join(append(faults, s.unknown("body, priority, delay, ttr")...)...)
}

// seconds reads a duration that the server counts in seconds; parts of one are rounded up.
func (s *spec) seconds(name string, least time.Duration, into *time.Duration) error {
	value, ok, err := s.take(name)
	if err != nil || !ok {
		return err
	}
	const most = math.MaxUint32 * time.Second
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		return fmt.Errorf("%s is %q: want a duration such as 90s, from %v to %v", name, value, least, most)
	}
	*into = d
	return nil
}
