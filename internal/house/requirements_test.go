package house_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/house"
)

// groups is how many requirements each group has.
var groups = map[string]int{"S0": 55, "S1": 29, "S2": 21, "S3": 28, "S4": 18, "E": 48, "A": 9}

func TestTheTableOfRequirementsIsWhole(t *testing.T) {
	seen := map[string]int{}
	for line := range strings.Lines(string(read(t, root(t), "docs/REQUIREMENTS.md"))) {
		line = strings.TrimSuffix(line, "\n")
		if r, ok := house.Row(line); ok {
			require.Zero(t, seen[r.ID], "%s is there twice", r.ID)
			seen[r.ID]++
			require.NotEmpty(t, r.Line, r.ID)
			require.NotEmpty(t, r.Proven, r.ID)
		}
	}
	total := 0
	for g, n := range groups {
		total += n
		for i := range n {
			require.Contains(t, seen, fmt.Sprintf("%s-%d", g, i+1))
		}
	}
	require.Len(t, seen, total)
}

func TestTestsNameOnlyRequirementsThatExist(t *testing.T) {
	covered, err := house.Covered(root(t))
	require.NoError(t, err)
	require.NotEmpty(t, covered)
	for id, tests := range covered {
		g, n, _ := strings.Cut(id, "-")
		var i int
		_, err := fmt.Sscan(n, &i)
		require.NoError(t, err)
		if i < 1 || i > groups[g] {
			t.Errorf("%v name %s, which does not exist", tests, id)
		}
	}
}

func TestRefreshFillsTheLastColumn(t *testing.T) {
	in := "# Title\n| id | asked | proven |\n|---|---|---|\n| S4-1 | one | open |\n| S4-2 | two | later: x |\n| E-1 | three | x.TestGone |\n| E-2 | four | open |\n| E-3 | five | open |"
	out := house.Refresh(in,
		map[string][]string{"S4-1": {"a.TestX"}, "E-3": {"a.A", "a.B", "a.C", "a.D", "a.E"}},
		map[string]bool{"E-2": true})
	require.Equal(t, "# Title\n| id | asked | proven |\n|---|---|---|\n| S4-1 | one | a.TestX |\n| S4-2 | two | later: x |\n| E-1 | three | open |\n"+
		"| E-2 | four | not applicable, see ENGINE.md |\n| E-3 | five | a.A, a.B, a.C and 2 more |", out)
}
