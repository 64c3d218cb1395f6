package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Requirement is one row of docs/REQUIREMENTS.md.
type Requirement struct {
	ID     string
	Line   string // what is asked
	Proven string // by which tests; or "later: ..."; or "open"
}

var (
	idPattern     = regexp.MustCompile(`\b(?:S[0-4]|E|A)-\d+\b`)
	rowPattern    = regexp.MustCompile(`^\| ((?:S[0-4]|E|A)-\d+) \| (.*) \| (.*) \|$`)
	naPattern     = regexp.MustCompile(`not applicable: *((?:S[0-4]|E|A)-\d+)`)
	coversPattern = regexp.MustCompile(`(?m)^Covers:(.*)$`)
)

// Row reads a line of the table; ok is false for any other line.
func Row(line string) (r Requirement, ok bool) {
	m := rowPattern.FindStringSubmatch(line)
	if m == nil {
		return Requirement{}, false
	}
	return Requirement{m[1], m[2], m[3]}, true
}

func (r Requirement) String() string {
	return fmt.Sprintf("| %s | %s | %s |", r.ID, r.Line, r.Proven)
}

// Covered finds the tests below root that name a requirement in a line "Covers: ID, ID" of their comment. It
// returns "package.Test" names by id, sorted.
func Covered(root string) (map[string][]string, error) {
	files, err := Files(root, "_test.go")
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			for _, m := range coversPattern.FindAllStringSubmatch(f.Doc.Text(), -1) {
				for _, id := range idPattern.FindAllString(m[1], -1) {
					out[id] = append(out[id], path.Dir(name)+"."+f.Name.Name)
				}
			}
		}
	}
	for id := range out {
		slices.Sort(out[id])
		out[id] = slices.Compact(out[id])
	}
	return out, nil
}

// NotApplicable lists the ids that docs/ENGINE.md answers as "not applicable: ID". No file, no ids.
func NotApplicable(root string) (map[string]bool, error) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "ENGINE.md"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	out := map[string]bool{}
	for _, m := range naPattern.FindAllSubmatch(b, -1) {
		out[string(m[1])] = true
	}
	return out, nil
}

// Refresh returns the document with its last column brought up to date. A row without tests keeps a word that
// begins with "later:", and is "open" otherwise.
func Refresh(document string, covered map[string][]string, notApplicable map[string]bool) string {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		r, ok := Row(line)
		if !ok {
			continue
		}
		tests := covered[r.ID]
		switch {
		case len(tests) > 3:
			r.Proven = fmt.Sprintf("%s and %d more", strings.Join(tests[:3], ", "), len(tests)-3)
		case len(tests) > 0:
			r.Proven = strings.Join(tests, ", ")
		case notApplicable[r.ID]:
			r.Proven = "not applicable, see ENGINE.md"
		case !strings.HasPrefix(r.Proven, "later:"):
			r.Proven = "open"
		}
		lines[i] = r.String()
	}
	return strings.Join(lines, "\n")
}
