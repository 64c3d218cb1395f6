package target

import (
	"errors"
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/redis"
)

// maxRefusals is how often a server may refuse a command: as often as the engine can count. Time is what bounds it.
const maxRefusals = 65535

// defaultOutage is that of the library.
const defaultOutage = 30 * time.Second

// patient is a command that goes out again while its server says that it cannot serve now (a replica that was the
// primary, a server that loads its data), for as long as a server may be away. Its script, if it is one, must be fit for
// redis.RefusedWhole.
type patient struct {
	redis.Cmd
	bound time.Duration // from the first refusal on; 0 = none
	since time.Time     // when that came; zero: there was none
	spent bool          // it was refused for too long
}

// calm forgets the refusals of an earlier use.
func (p *patient) calm(bound time.Duration) { p.bound, p.since, p.spent = bound, time.Time{}, false }

// boundOf is Options.MaxOutage as the bound of a patient.
func boundOf(outage time.Duration) time.Duration {
	if outage == 0 {
		return defaultOutage
	}
	return max(0, outage)
}

// silent adds to the error of the first word with a server what it does not say: that there was no answer at all.
func silent(err error, outage time.Duration) error {
	var ce *fdengine.CallError
	if errors.As(err, &ce) && ce.Class == fdengine.ErrUnavailable && ce.Cause == nil {
		return fmt.Errorf("%w: nothing was heard from it for %v", err, outage)
	}
	return err
}

// Spec implements fdengine.Speccer.
func (p *patient) Spec() fdengine.Spec { return redis.RefusedWhole{Cmd: &p.Cmd}.Spec() }

// Verdict implements fdengine.Verdicter.
func (p *patient) Verdict(frames []byte, maybe bool) fdengine.Verdict {
	v := redis.RefusedWhole{Cmd: &p.Cmd}.Verdict(frames, maybe)
	if v.Then != fdengine.RetryHere || p.bound == 0 {
		return v
	}
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	if now.Sub(p.since) >= p.bound {
		p.spent, v.Then = true, fdengine.Deliver
	}
	return v
}
