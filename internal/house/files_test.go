package house_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/house"
)

const maxLines = 500

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return b
}

func TestNoSourceFileGrowsPastItsBound(t *testing.T) {
	dir := root(t)
	files, err := house.Files(dir, ".go")
	require.NoError(t, err)
	for _, name := range files {
		if n := bytes.Count(read(t, dir, name), []byte("\n")); !house.IsTest(name) && n > maxLines {
			t.Errorf("%s has %d lines, the bound is %d: which second concept moved in?", name, n, maxLines)
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	dir := root(t)
	files, err := house.Files(dir, ".go", ".md", "Makefile", ".sh", ".ci/run", ".ci/fuzz", ".mod")
	require.NoError(t, err)
	for _, name := range files {
		for i, line := range strings.Split(string(read(t, dir, name)), "\n") {
			for _, word := range []string{"TO" + "DO", "FIX" + "ME"} {
				if strings.Contains(line, word) {
					t.Errorf("%s:%d says %s", name, i+1, word)
				}
			}
		}
	}
}

func TestEveryPackageIsTestedForLeakedGoroutines(t *testing.T) {
	dir := root(t)
	files, err := house.Files(dir, ".go")
	require.NoError(t, err)
	guarded := map[string]bool{} // package directory: has the TestMain
	for _, name := range files {
		pkg := path.Dir(name)
		if !guarded[pkg] {
			guarded[pkg] = false // it is there
		}
		src := read(t, dir, name)
		if house.IsTest(name) && bytes.Contains(src, []byte("func TestMain(")) && bytes.Contains(src, []byte("goleak.VerifyTestMain(")) {
			guarded[pkg] = true
		}
		// A command without tests is started by tests of others, or by hand.
		if bytes.HasPrefix(src, []byte("package main")) || bytes.Contains(src, []byte("\npackage main\n")) {
			tests, err := filepath.Glob(filepath.Join(dir, pkg, "*_test.go"))
			require.NoError(t, err)
			guarded[pkg] = guarded[pkg] || len(tests) == 0
		}
	}
	for pkg, ok := range guarded {
		if !ok {
			t.Errorf("%s has no TestMain with goleak.VerifyTestMain", pkg)
		}
	}
}

func TestTheRootModuleRequiresOnlyTheFive(t *testing.T) {
	var direct []string
	for line := range strings.Lines(string(read(t, root(t), "go.mod"))) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if f := strings.Fields(line); len(f) == 2 && strings.Contains(f[0], ".") && strings.HasPrefix(f[1], "v") {
			direct = append(direct, f[0])
		}
	}
	require.NotEmpty(t, direct)
	require.Subset(t, append(slices.Clone(thirdParty), "github.com/stretchr/testify", "go.uber.org/goleak"), direct)
}
