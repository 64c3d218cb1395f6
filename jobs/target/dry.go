package target

import (
	"context"
	"sync/atomic"

	"github.com/fdengine/fullduplex/jobs/submit"
)

// dry stands for a target that is not there: it takes every job and sends none.
type dry struct {
	Target // not connected: good for Traits and Parts
	body   body
	bytes  *atomic.Int64
}

// Plan is a target that would be what the specs name, if it were connected to anything: it takes every job, and adds
// their payloads up.
func Plan(specs []string, o Options) (t submit.Target, parts []Part, payload *atomic.Int64, err error) {
	parsed, err := check(specs, o)
	if err != nil {
		return nil, nil, nil, err
	}
	payload = new(atomic.Int64)
	var ts []Target
	for _, s := range parsed {
		d := dry{bytes: payload, body: s.body}
		switch s.scheme {
		case "embedded":
			d.Target = &server{name: s.name(), ids: IDsNever}
		case "redis":
			if d.Target, err = s.server(o); err != nil {
				return nil, nil, nil, err
			}
		default:
			d.Target = &tube{name: s.name(), spec: s}
		}
		ts = append(ts, d)
		parts = append(parts, d.Parts()...)
	}
	if len(ts) == 1 {
		return ts[0], parts, payload, nil
	}
	return newSpread(ts), parts, payload, nil
}

// Submit implements submit.Target.
func (d dry) Submit(_ context.Context, job submit.Job, t *submit.Ticket, done submit.Done) error {
	if d.body == bodyJob && !job.JSON {
		return ErrBody
	}
	d.bytes.Add(int64(len(job.Payload)))
	done.Done(t, nil)
	return nil
}

// Shutdown implements submit.Target.
func (d dry) Shutdown(context.Context) error { return nil }

// Close implements Target.
func (d dry) Close() error { return nil }
