package fdengine

import (
	"time"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/panics"
)

// observe tells the observer, if there is one. No lock is held. A Goexit in it ends the calling goroutine, which
// start brings back; so nothing that has to happen may come after a call of it, or it must be in the state kept.
func (e *Engine) observe(ev Event) {
	if e.opt.Observer == nil {
		return
	}
	if err := panics.Guard("Observer", e.exited, func() error { e.opt.Observer.Observe(ev); return nil }); err != nil {
		e.caught.Add(1)
		e.say("caught", err)
	}
}

// exited counts a Goexit in foreign code.
func (e *Engine) exited(*panics.Error) { e.caught.Add(1) }

func (e *Engine) newSample(start int64, fate carry.Fate, sends int, err error) Sample {
	return Sample{Took: time.Duration(max(e.clock.Load()-start, 0)), Fate: fate, Sends: sends, Err: err}
}

// sample reports one settled command.
func (e *Engine) sample(start int64, fate carry.Fate, sends int, err error) {
	if e.opt.Observer == nil {
		return
	}
	one := [1]Sample{e.newSample(start, fate, sends, err)}
	e.observe(Event{Kind: EventCompleted, Commands: 1, Samples: one[:]})
}

// sampleEnds reports outcomes that did not come from the reader.
func (e *Engine) sampleEnds(ends []carry.End[entry], class, cause error) {
	if e.opt.Observer == nil || len(ends) == 0 {
		return
	}
	samples := e.samplesOf(nil, ends, class, cause)
	e.observe(Event{Kind: EventCompleted, Commands: len(samples), Samples: samples})
}

// samplesOf appends the samples of ends to dst.
func (e *Engine) samplesOf(dst []Sample, ends []carry.End[entry], class, cause error) []Sample {
	for _, x := range ends {
		var err error
		if x.Why != carry.WhySent && x.Why != carry.WhyRefused {
			err = e.failure(x, class, cause)
		}
		dst = append(dst, e.newSample(x.Start, x.Fate, x.Sends, err))
	}
	return dst
}

// flushSamples reports what the reader settled in the last chunk.
func (s *session) flushSamples() {
	if len(s.samples) == 0 {
		return
	}
	samples := s.samples
	s.samples = s.samples[:0]
	s.e.observe(Event{Kind: EventCompleted, Commands: len(samples), Samples: samples, Addr: s.addr})
	clear(samples)
}

// say logs when a logger was asked for. A panic in the logger is counted.
func (e *Engine) say(what string, err error) {
	if e.opt.Logger == nil {
		return
	}
	if perr := panics.Isolate("Logger", func() error { e.opt.Logger.Warn(what, "err", err); return nil }); perr != nil {
		e.caught.Add(1)
	}
}
