package mutants_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/mutants"
)

// victim is a module with one function and tests of it.
func victim(t *testing.T) *mutants.Runner {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module victim\n\ngo 1.26\n",
		"p/sum.go":      "package p\n\nfunc Sum(a, b int) int { return a + b }\n",
		"p/sum_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestZero(t *testing.T) {\n\tif Sum(0, 0) != 0 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestRed(t *testing.T) { t.Fatal() }\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return &mutants.Runner{Root: dir, Work: t.TempDir()}
}

func change(old, text string, kill ...string) mutants.Mutant {
	m := mutants.Mutant{Name: "change", File: "p/sum.go", Old: old, New: text}
	for _, k := range kill {
		m.Kill = append(m.Kill, mutants.Killer{Pkg: "p", Run: k})
	}
	return m
}

func TestAMutantIsKilledByATestThatGoesRedAndByNothingElse(t *testing.T) {
	r := victim(t)
	for _, c := range []struct {
		name string
		m    mutants.Mutant
		want mutants.Verdict
		by   string
		err  string
	}{
		{"red", change("a + b", "a - b", "^TestZero$", "^TestSum$"), mutants.Killed, "TestSum", ""},
		{"panic", change("return a + b", "panic(a)", "^TestSum$"), mutants.Killed, "TestSum", ""},
		{"survives", change("a + b", "a - b", "^TestZero$"), mutants.Survived, "", ""},
		{"does not compile", change("a + b", "a + c", "^TestSum$"), mutants.Survived, "", "does not compile"},
		{"does not apply", change("a * b", "a", "^TestSum$"), mutants.Survived, "", "no longer applies"},
		{"no such test", change("a + b", "a - b", "^TestNone$"), mutants.Survived, "", "no test matches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := r.Run(t.Context(), c.m)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.want, res.Verdict)
			require.Equal(t, c.by, res.By)
		})
	}
	src, err := os.ReadFile(filepath.Join(r.Root, "p", "sum.go"))
	require.NoError(t, err)
	require.Contains(t, string(src), "return a + b", "the tree is not touched")
}

func TestRunningOutOfTimeProvesNothingUnlessTheMutantHangs(t *testing.T) {
	r := victim(t)
	r.Timeout = 500 * time.Millisecond
	m := change("return a + b", "select {}", "^TestSum$")
	m.Old, m.New = "{ return a + b }", "{ for a != b+1 { b-- ; b++ }; return a }"
	_, err := r.Run(t.Context(), m)
	require.ErrorContains(t, err, "ran out of time")
	m.Hangs = true
	res, err := r.Run(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, mutants.Killed, res.Verdict)
}

// The test of this victim fails on each run but the second.
func TestATestThatFailsInSomeRunsOnlyIsLuckAndNoKill(t *testing.T) {
	r := victim(t)
	flip := "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestFlip(t *testing.T) {\n\tif Sum(2, 3) == 5 {\n\t\treturn\n\t}\n" +
		"\tif _, err := os.Stat(\"was\"); err == nil {\n\t\tif os.Remove(\"was\") == nil {\n\t\t\treturn\n\t\t}\n\t}\n" +
		"\tif err := os.WriteFile(\"was\", nil, 0o600); err == nil {\n\t\tt.Fatal()\n\t}\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(r.Root, "p", "flip_test.go"), []byte(flip), 0o600))
	m := change("a + b", "a - b", "^TestFlip$")
	res, err := r.Run(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, mutants.Killed, res.Verdict, "once is what was asked for")
	require.NoError(t, os.Remove(filepath.Join(r.Root, "p", "was")))
	r.Times = 3
	res, err = r.Run(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, mutants.Lucky, res.Verdict)
	require.Equal(t, "TestFlip, 2 times of 3", res.By)
	m.Kill = append(m.Kill, mutants.Killer{Pkg: "p", Run: "^TestSum$"})
	res, err = r.Run(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, mutants.Killed, res.Verdict, "another test may be sure")
	require.Equal(t, "TestSum", res.By)
}

func TestATestThatIsRedWithoutAMutantIsAnError(t *testing.T) {
	r := victim(t)
	good, bad := change("a + b", "a - b", "^TestSum$"), change("a + b", "a - b", "^TestRed$")
	require.NoError(t, r.Unchanged(t.Context(), []mutants.Mutant{good}))
	require.ErrorContains(t, r.Unchanged(t.Context(), []mutants.Mutant{good, bad}), "red already: TestRed")
}
