// Package target is the places that jobs can be sent to, and read back from: a stream or a list of a Redis server,
// or of one that is started inside this process, a tube of a beanstalkd, and several of those at once. It knows how a
// job is spelled there and what an answer to it means; when a command goes out, and whether again, is the library's
// affair, which the package tells only the class of its commands.
package target

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// Target is a submit.Target that can also be read back.
type Target interface {
	submit.Target
	// ReadBack calls found for each job that the server holds and that was not there when the first run began, in
	// the server's order. The slices are valid during the call; id and queue are empty where only payloads arrive
	// (submit.Traits.Bare). It does not tell whose jobs they are. Call it after Shutdown.
	ReadBack(ctx context.Context, found func(id, queue, payload []byte)) error
	// Parts are the targets it consists of, by submit.Traits.Part; itself, when it is one.
	Parts() []Part
	// Engine is the state of the connections below, added up.
	Engine() fdengine.Stats
	// Close frees everything, an embedded server included. Shutdown comes first when jobs were submitted.
	Close() error
}

// Part names one target.
type Part struct {
	Name    string // what decides which jobs it gets; without user and password
	Mark    string // where it stood when the first run began; empty: not known
	Warning string // something that the user should know, after the run; usually empty
}

// Options configure Open.
type Options struct {
	// Retries is how often a job that may have been taken is sent again; default: 16 times where that leaves one
	// (submit.Traits.Once), and never elsewhere; negative = never.
	Retries   int
	IDs       IDs
	MaxOutage time.Duration // how long a job waits for a usable connection; 0 = the library's default, negative = for ever
	ReadBack  bool          // there will be a ReadBack: a beanstalkd needs a word with the server before the first job for that
	// Mark is where an earlier run found a target of that name (Part.Mark); empty, or a nil func: there was none.
	Mark func(name string) string
}

func (o Options) validate() error {
	var errs []error
	if o.Retries > 1000 {
		errs = append(errs, fmt.Errorf("Retries is %d: want at most 1000", o.Retries))
	}
	if o.IDs > IDsNever {
		errs = append(errs, fmt.Errorf("IDs is %d: want at most %d", o.IDs, IDsNever))
	}
	return errors.Join(errs...)
}

func (o Options) markOf(name string) string {
	if o.Mark == nil {
		return ""
	}
	return o.Mark(name)
}

// Open connects to what the specs name; several targets share the jobs by hash of their ids.
//
//	embedded:                                  a stream on a server inside this process, gone with it
//	redis://[user:password@]host:port[/db][?stream=NAME | list=NAME]   (default: stream "jobs")
//	beanstalk://host:port/TUBE
//
// Lists and tubes take body=payload (default) or body=job; tubes also priority, delay and ttr. Open returns after
// one answered round trip to each, or with the first error, within ctx. It waits for each as long as a job would,
// Options.MaxOutage.
func Open(ctx context.Context, specs []string, o Options) (Target, error) {
	parsed, err := check(specs, o)
	if err != nil {
		return nil, err
	}
	var ts []Target
	for _, s := range parsed {
		t, err := s.open(ctx, o)
		if err != nil {
			for _, t := range ts {
				err = errors.Join(err, t.Close())
			}
			return nil, err
		}
		ts = append(ts, t)
	}
	if len(ts) == 1 {
		return ts[0], nil
	}
	return newSpread(ts), nil
}

// Check says what is wrong with the specs or the options, without connecting to anything.
func Check(specs []string, o Options) error {
	_, err := check(specs, o)
	return err
}

func check(specs []string, o Options) ([]spec, error) {
	errs := []error{o.validate()}
	if len(specs) == 0 {
		errs = append(errs, errors.New("no target"))
	}
	var parsed []spec
	names := map[string]bool{}
	for i, text := range specs {
		s, fit, err := parseSpec(text)
		if fit && s.scheme != "embedded" {
			err = errors.Join(err, s.check(o))
		}
		if err == nil && names[s.name()] {
			err = fmt.Errorf("%s is given twice", s.name())
		}
		if err != nil {
			for _, fault := range faultsOf(err) {
				errs = append(errs, fmt.Errorf("target %d%s: %w", i+1, shown(text), fault))
			}
			continue
		}
		names[s.name()] = true
		parsed = append(parsed, s)
	}
	return parsed, errors.Join(errs...)
}

// faultsOf takes apart what errors.Join has put together.
func faultsOf(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, faultsOf(e)...)
	}
	return all
}

// NeedJSON says whether one of the specs wants jobs as JSON objects, which plain lines are not; see ErrBody.
func NeedJSON(specs []string) bool {
	for _, text := range specs {
		if s, fit, err := parseSpec(text); fit && err == nil && s.body == bodyJob {
			return true
		}
	}
	return false
}

// Redact returns spec with its password hidden, for showing.
func Redact(spec string) string {
	if u, err := url.Parse(spec); err == nil {
		return u.Redacted()
	}
	return "(not a URL)"
}
