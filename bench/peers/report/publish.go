package report

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fdengine/fullduplex/bench/peers/plan"
)

// A document has a place for a result between two lines, so that nobody types its numbers.
const (
	placeBegin = "<!-- make peers: begin -->"
	placeEnd   = "<!-- make peers: end -->"
)

var errNoPlace = errors.New("report: the document has no place for a result")

// Publish puts r into the places that README.md and docs/PERFORMANCE.md of dir have, and returns their paths. results
// is where the files of r are, seen from dir, with slashes.
func (r *Report) Publish(dir, results string) ([]string, error) {
	var paths []string
	for name, text := range map[string]string{
		"README.md": r.short(results), "docs/PERFORMANCE.md": "\n" + deeper(r.Markdown()) + "\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		old, err := os.ReadFile(file)
		if err != nil {
			return paths, err
		}
		filled, err := fill(string(old), text)
		if err != nil {
			return paths, fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(file, []byte(filled), 0o644); err != nil {
			return paths, err
		}
		paths = append(paths, file)
	}
	return paths, nil
}

// fill replaces what is between the two lines.
func fill(document, text string) (string, error) {
	before, rest, ok := strings.Cut(document, placeBegin+"\n")
	if !ok {
		return "", errNoPlace
	}
	_, after, ok := strings.Cut(rest, placeEnd)
	if !ok {
		return "", errNoPlace
	}
	return before + placeBegin + "\n" + text + placeEnd + after, nil
}

// deeper makes the headings of a document those of a chapter.
func deeper(markdown string) string {
	lines := strings.Split(strings.TrimSpace(markdown), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "#") {
			lines[i] = "##" + l
		}
	}
	return strings.Join(lines, "\n")
}

// short is what a reader who has a minute is told.
func (r *Report) short(results string) string {
	var b strings.Builder
	file := func(ending string) string { return path.Join(results, r.Name()+ending) }
	fmt.Fprintf(&b, "\nClient CPU time per command, blocking callers on one connection, beside a server that only counts (medians; %s, "+
		"%d CPUs, %s, %s):\n\n", r.Machine.CPU, r.Machine.CPUs, r.Machine.Go, r.Date.Format("2006-01-02"))
	callersTable(&b, blocking(r.Tables), plan.CPU, nanos, func(label string) string {
		switch label {
		case "noop":
			return "" // what the measuring costs
		case "fullduplex":
			return "**" + label + "**"
		}
		return label
	})
	fmt.Fprintf(&b, "\n![CPU per command and commands per second over the number of callers](%s)\n\n", file(".svg"))
	ok, all := 0, 0
	for _, o := range r.Bars {
		if o.Must != nil {
			all++
			if o.State == plan.OK {
				ok++
			}
		}
	}
	fmt.Fprintf(&b, "%d of the %d limits that this library sets itself were kept in that run: [all tables and limits](%s), "+
		"[every number](%s).\n\n", ok, all, file(".md"), file(".json"))
	return b.String()
}
