package contend

import "context"

// noop does nothing: what it costs is the measuring loop.
type noop struct{}

func limits() []Contender {
	return []Contender{
		{Name: "raw limit", Setting: "encoded before, one write and the reads for all callers", Group: Limit, Server: "resp", Open: openRaw},
		{Name: "wake floor", Setting: "callers park and are woken, no I/O", Group: Limit, NoIO: true, Open: openWake},
		{
			Name: "noop", Setting: "the measuring loop alone", Group: Limit, NoIO: true,
			Open: func(context.Context, Target) (Client, error) { return noop{}, nil },
		},
	}
}

func (noop) Caller(int) Caller     { return noop{} }
func (noop) Batch(int, int) Caller { return noop{} }
func (noop) Call() error           { return nil }
func (noop) Close() error          { return nil }

func (noop) Stream(int) (Flow, error) { return noop{}, nil }

// Run counts.
func (noop) Run(more func() bool) (n int64, err error) {
	for more() {
		n += streamGroup
	}
	return n, nil
}
