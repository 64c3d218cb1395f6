// Package report writes what a run has measured: a file with every number, tables in Markdown, and a picture. It
// knows formats; it measures nothing and judges nothing.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fdengine/fullduplex/bench/peers/plan"
	"github.com/fdengine/fullduplex/bench/peers/run"
)

// Report is one run.
type Report struct {
	Date    time.Time         `json:"date"`
	Command string            `json:"command"`
	Kind    Kind              `json:"kind"`
	Machine Machine           `json:"machine"`
	Peers   map[string]string `json:"peers"` // module versions
	Size    plan.Size         `json:"size"`
	Quiet   run.Quiet         `json:"quiet"`
	Bars    []plan.Outcome    `json:"bars"`
	Tables  plan.Set          `json:"tables"`
}

// Kind says how much of it there is.
type Kind string

const (
	Full  Kind = "full"  // all contenders and all bars
	Quick Kind = "quick" // the engine and the peers that were best in a full one
	Part  Kind = "part"  // only some bars
)

// Machine is where a run took place.
type Machine struct {
	System string `json:"system"` // GOOS/GOARCH and, where known, the kernel
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"` // of this process
	Go     string `json:"go"`
	Load   string `json:"load,omitempty"` // when the run began
}

// ThisMachine describes the machine; what it does not tell is left empty.
func ThisMachine() Machine {
	m := Machine{System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version()}
	if kernel := line("/proc/sys/kernel/osrelease", ""); kernel != "" {
		m.System += " " + kernel
	}
	m.CPU = line("/proc/cpuinfo", "model name")
	m.Load = line("/proc/loadavg", "")
	return m
}

// line returns the first line of a file, or what follows the colon of the first that begins with name.
func line(path, name string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(b)) {
		l = strings.TrimSpace(l)
		if name == "" {
			return l
		}
		if strings.HasPrefix(l, name) {
			_, v, _ := strings.Cut(l, ":")
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// peers are the modules that are compared.
var peers = []string{
	"github.com/redis/rueidis", "github.com/valkey-io/valkey-go", "github.com/redis/go-redis/v9",
	"github.com/mediocregopher/radix/v4", "github.com/beanstalkd/go-beanstalk",
}

// Versions are those of the peers that this program was built with.
func Versions() map[string]string {
	out := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, d := range info.Deps {
		if slices.Contains(peers, d.Path) {
			out[d.Path] = d.Version
		}
	}
	return out
}

// Name is what the files of the report begin with: its date, and its kind unless it is full.
func (r *Report) Name() string {
	n := r.Date.Format(time.DateOnly)
	if r.Kind != Full {
		n += "-" + string(r.Kind)
	}
	return n
}

// Judge says for each of the bars whether it holds.
func (r *Report) Judge(bars []plan.Bar) {
	r.Bars = nil
	for _, b := range bars {
		r.Bars = append(r.Bars, b.Judge(r.Tables))
	}
}

// Rejudge judges again what r was made for, and by the bars that have come since. What the tables of r no longer tell,
// since a bar now needs others, is left as it was.
func (r *Report) Rejudge() {
	var out []plan.Outcome
	for _, b := range plan.Bars() {
		i := slices.IndexFunc(r.Bars, func(o plan.Outcome) bool { return o.ID == b.ID })
		switch o := b.Judge(r.Tables); {
		case o.State != plan.Unmeasured && (i >= 0 || r.Kind != Part):
			out = append(out, o)
		case i >= 0:
			out = append(out, r.Bars[i])
		}
	}
	r.Bars = out
}

// Write puts the report into dir, as .json, .md and .svg, and returns the paths. An earlier report of that day is
// overwritten.
func (r *Report) Write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return r.WriteAs(filepath.Join(dir, r.Name()))
}

// WriteAs is Write with a path that lacks only its endings.
func (r *Report) WriteAs(name string) ([]string, error) {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return nil, err
	}
	picture, err := r.Chart()
	if err != nil {
		return nil, err
	}
	var paths []string
	for ending, content := range map[string][]byte{".json": append(data, '\n'), ".md": []byte(r.Markdown()), ".svg": picture} {
		if err := os.WriteFile(name+ending, content, 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, name+ending)
	}
	slices.Sort(paths)
	return paths, nil
}

// Read reads the .json of a report.
func Read(path string) (*Report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	return r, json.Unmarshal(b, r)
}

// LastFull reads the newest full report in dir; nil when there is none.
func LastFull(dir string) (*Report, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths) // names begin with the date
	for _, p := range slices.Backward(paths) {
		r, err := Read(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if r.Kind == Full {
			return r, nil
		}
	}
	return nil, nil
}
