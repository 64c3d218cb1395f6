package state

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Origin is what a state file is about. Another run may only go on with it when its own is the same.
type Origin struct {
	Settings map[string]string `json:"settings"` // what decides which job a line is
	Targets  []Place           `json:"targets"`
}

// Place is one target.
type Place struct {
	Name string `json:"name"`           // without a password
	Mark string `json:"mark,omitempty"` // where it stood when the first run began; the target's own notation
}

// Past is what earlier runs left. It is not changed once it was read.
type Past struct {
	Origin Origin
	Fresh  bool   // there was no earlier run
	Sent   int64  // no line behind this one was ever sent
	Hash   uint64 // of the input up to and including line Sent
	Acked  Set    // taken by the target, and lines that are no jobs
	Known  Set    // of Acked: the target had them already
	Free   Set    // of the lines up to Sent: certainly not taken
	Twice  Set    // of the lines up to Sent: sent again although they were in doubt
	Again  int64  // how often a run was allowed to send a job again that may have been taken, at most
}

// Doubts is how many lines may have been taken; see Doubt.
func (p *Past) Doubts() int64 {
	settled := p.Acked.Clone()
	for _, r := range p.Free.r {
		settled.Add(r.First, r.Last)
	}
	n := p.Sent
	for _, r := range settled.r {
		n -= max(0, min(r.Last, p.Sent)-r.First+1)
	}
	return n
}

// Doubt says whether line n may have been taken: it may have been sent, and nothing is known of its end.
func (p *Past) Doubt(n int64) bool { return n <= p.Sent && !p.Acked.Has(n) && !p.Free.Has(n) }

// Load reads a state file without taking hold of it. A file that does not exist, or is empty, is Fresh.
func Load(path string) (*Past, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Past{Fresh: true}, nil
	}
	if err != nil {
		return nil, err
	}
	p, _, err := parse(path, b)
	return p, err
}

// parse returns what the content of a file says, and how much of it is whole lines.
func parse(path string, b []byte) (p *Past, whole int64, err error) {
	p = &Past{Fresh: true}
	text := string(b)
	if n := min(len(text), len(magic)); text[:n] != magic[:n] {
		return nil, 0, fmt.Errorf("%s is no state file of jobsub", path)
	}
	for number := 1; ; number++ {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return p, whole, nil
		}
		if number == 1 {
			p.Origin, err = decodeOrigin(line)
			p.Fresh = false
		} else {
			var r record
			if r, err = decodeRecord(line); err == nil {
				p.apply(&r)
			}
		}
		if errors.Is(err, errChecksum) && number > 1 && rest == "" {
			return p, whole, nil // written when the power went: its blocks may reach the disk in any order
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s is damaged in line %d: %w", path, number, err)
		}
		whole += int64(len(line)) + 1
		text = rest
	}
}

func (p *Past) apply(r *record) {
	for _, x := range r.tried.r {
		for n := x.First; n <= x.Last; n++ {
			p.Free.Remove(n)
		}
	}
	if r.sent > 0 {
		p.Sent, p.Hash = r.sent, r.hash
	}
	for _, x := range r.acked.r {
		p.Acked.Add(x.First, x.Last)
	}
	for _, x := range r.known.r {
		p.Known.Add(x.First, x.Last)
	}
	for _, x := range r.free.r {
		p.Free.Add(x.First, x.Last)
	}
	for _, x := range r.twice.r {
		p.Twice.Add(x.First, x.Last)
	}
	p.Again = max(p.Again, r.again)
}

// Matches returns what of o differs from the origin of the earlier runs, all at once.
func (p *Past) Matches(path string, o Origin) error {
	if p.Fresh {
		return nil
	}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s was begun with "+format, append([]any{path}, args...)...))
	}
	all := maps.Clone(p.Origin.Settings)
	maps.Copy(all, o.Settings)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was, is := p.Origin.Settings[name], o.Settings[name]; was != is {
			bad("%s %q, this run has %q", name, was, is)
		}
	}
	if was, is := names(p.Origin.Targets), names(o.Targets); !slices.Equal(was, is) {
		bad("targets %s, this run has %s", strings.Join(was, " "), strings.Join(is, " "))
	}
	return errors.Join(errs...)
}

func names(ps []Place) []string {
	out := make([]string, 0, len(ps))
	for _, p := range ps {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

// Mark is where the target of that name stood when the first run began; empty when that is not known.
func (p *Past) Mark(name string) string {
	for _, t := range p.Origin.Targets {
		if t.Name == name {
			return t.Mark
		}
	}
	return ""
}
