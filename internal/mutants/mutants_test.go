package mutants_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/house"
	"github.com/fdengine/fullduplex/internal/mutants"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := house.Root()
	require.NoError(t, err)
	return dir
}

func TestEachMutantAppliesToTheCodeAsItIs(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants.Table() {
		require.False(t, names[m.Name], "%s is there twice", m.Name)
		names[m.Name] = true
		require.NotEmpty(t, m.Breaks, m.Name)
		require.NotEmpty(t, m.Kill, m.Name)
		src, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(m.File)))
		require.NoError(t, err)
		mutated, err := m.Apply(string(src))
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = parser.ParseFile(token.NewFileSet(), m.File, mutated, 0)
		require.NoError(t, err, m.Name)
	}
	require.GreaterOrEqual(t, len(names), 36)
}

// A killer that matches no test would let a mutant live for ever, in a package that has no such test any more.
func TestEachKillerNamesTestsThatExist(t *testing.T) {
	tests := map[string]map[string]bool{}
	for _, m := range mutants.Table() {
		for _, k := range m.Kill {
			if tests[k.Pkg] == nil {
				tests[k.Pkg] = testsOf(t, filepath.Join(root(t), filepath.FromSlash(k.Pkg)))
			}
			_, err := regexp.Compile(k.Run)
			require.NoError(t, err, m.Name)
			for _, name := range strings.Split(strings.Trim(k.Run, "^()$"), "|") {
				if !tests[k.Pkg][name] {
					t.Errorf("mutant %s: %s has no test %s", m.Name, k.Pkg, name)
				}
			}
		}
	}
}

// testsOf lists the test functions of the package in dir.
func testsOf(t *testing.T, dir string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}

func TestAMutantWhoseOldTextIsNotThereOnceSaysSo(t *testing.T) {
	m := mutants.Mutant{Name: "m", File: "x.go", Old: "a", New: "b"}
	for _, src := range []string{"", "aa", "xyz"} {
		_, err := m.Apply(src)
		require.ErrorContains(t, err, "mutant m no longer applies")
	}
	out, err := m.Apply("xay")
	require.NoError(t, err)
	require.Equal(t, "xby", out)
	m.New = "a"
	_, err = m.Apply("xay")
	require.ErrorContains(t, err, "changes nothing")
}
