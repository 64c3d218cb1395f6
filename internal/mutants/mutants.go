// Package mutants proves that the tests of the library can fail. A mutant is one small change of the source that
// breaks a promise; for each the table names the tests that have to go red. The package knows how to apply a change
// without touching the tree (an overlay of the go command), how to build and run the tests, and how to tell a test
// that failed from a program that does not compile. It knows nothing of what the code does. For tests only; no state
// is shared and nothing here is called concurrently.
package mutants

import (
	"fmt"
	"slices"
	"strings"
)

// Mutant is one change of one file, and who has to notice.
type Mutant struct {
	Name   string // short, unique, words joined by -
	File   string // slash-separated, relative to the root of the repository
	Old    string // what is replaced; must occur exactly once in File
	New    string
	Breaks string // the promise that is broken, for the report
	Hangs  bool   // the tests notice by not coming to an end: only then does running out of time count as red
	Kill   []Killer
}

// Killer is a set of tests of one package: those whose names match the pattern Run.
type Killer struct {
	Pkg string // relative to the root of the repository
	Run string // as for go test -run
}

// by makes a Killer of whole test names.
func by(pkg string, tests ...string) Killer {
	return Killer{Pkg: pkg, Run: "^(" + strings.Join(tests, "|") + ")$"}
}

// Table lists all mutants.
func Table() []Mutant {
	return slices.Concat(ofRecords(), ofStreams(), ofReplies(), ofSessions(), ofCallers(), ofConnections(), ofBindings(), ofSolo(), ofSockets(), ofTryWrite(), ofGroups(), ofParcels(), ofSpans(), ofWrites(), ofTurns())
}

// Apply returns src with the change of m made. It fails unless the old text occurs exactly once: then the code has
// moved on and the mutant must be written anew.
func (m *Mutant) Apply(src string) (string, error) {
	if m.Old == m.New {
		return "", fmt.Errorf("mutant %s changes nothing", m.Name)
	}
	if n := strings.Count(src, m.Old); n != 1 {
		return "", fmt.Errorf("mutant %s no longer applies: its old text occurs %d times in %s:\n%s", m.Name, n, m.File, m.Old)
	}
	return strings.Replace(src, m.Old, m.New, 1), nil
}
