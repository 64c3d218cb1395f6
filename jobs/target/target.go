// Package target is the places that jobs can be sent to, and read back from: a Redis stream on a server, or on
// one that is started inside this process. It knows how a job is spelled as an XADD and what an answer to it
// means; when a command goes out, and whether again, is the library's affair, which the package tells only the
// class of its commands.
package target

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// Target is a submit.Target that can also be read back.
type Target interface {
	submit.Target
	// ReadBack calls found for each job that the server holds and that was not there when the target was opened,
	// in the server's order. The slices are valid during the call. It does not tell whose jobs they are.
	ReadBack(ctx context.Context, found func(id, queue, payload []byte)) error
	// Engine is the state of the connections below.
	Engine() fdengine.Stats
	// Close frees everything, an embedded server included. Shutdown comes first when jobs were submitted.
	Close() error
}

// Options configure Open.
type Options struct {
	Retries   int           // re-sends of a job that may have been taken; 0 = none: such a job is never sent again
	MaxOutage time.Duration // how long a job waits for a usable connection; 0 = the library's default, negative = for ever
}

// Open connects to what spec names:
//
//	embedded:                                              a server inside this process, gone with it
//	redis://[user:password@]host:port[/db][?stream=NAME]   a stream (default "jobs") of a Redis or Valkey server
//
// It returns after one answered round trip, or with the error of it, within ctx.
func Open(ctx context.Context, spec string, o Options) (Target, error) {
	if o.Retries < 0 || o.Retries > 1000 {
		return nil, fmt.Errorf("Retries is %d: want 0 to 1000", o.Retries)
	}
	switch scheme, _, _ := strings.Cut(spec, ":"); scheme {
	case "embedded":
		if spec != "embedded:" {
			return nil, fmt.Errorf("target %q: nothing may follow embedded:", spec)
		}
		return openEmbedded(ctx, o)
	case "redis", "rediss":
		addr, stream, err := splitStream(spec)
		if err != nil {
			return nil, err
		}
		return openStream(ctx, addr, stream, o)
	}
	return nil, fmt.Errorf("target %q: want embedded: or redis://host:port/db?stream=NAME", Redact(spec))
}

// splitStream takes the parameter stream out of a URL.
func splitStream(spec string) (addr, stream string, err error) {
	u, err := url.Parse(spec)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the URL itself may hold a password
		}
		return "", "", fmt.Errorf("target: %w", err)
	}
	q := u.Query()
	stream = "jobs"
	if q.Has("stream") {
		if stream = q.Get("stream"); stream == "" {
			return "", "", errors.New("target: stream has no name")
		}
		q.Del("stream")
		u.RawQuery = q.Encode()
	}
	return u.String(), stream, nil
}

// Redact returns spec with its password hidden, for showing.
func Redact(spec string) string {
	if u, err := url.Parse(spec); err == nil {
		return u.Redacted()
	}
	return "(not a URL)"
}
