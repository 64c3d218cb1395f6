package house_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testInDocs is a test as docs/FAULTS.md names it: the directory of its package and its name.
var testInDocs = regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`")

// A bug that is said to be guarded by a test which has another name by now is guarded by nobody knows what.
func TestEachTestThatTheFaultsDocumentNamesExists(t *testing.T) {
	dir := root(t)
	named := testInDocs.FindAllStringSubmatch(string(read(t, dir, "docs/FAULTS.md")), -1)
	require.NotEmpty(t, named)
	sources := map[string]string{}
	for _, m := range named {
		pkg, name := m[1], m[2]
		if _, seen := sources[pkg]; !seen {
			files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pkg), "*_test.go"))
			require.NoError(t, err)
			var all strings.Builder
			for _, f := range files {
				rel, err := filepath.Rel(dir, f)
				require.NoError(t, err)
				all.Write(read(t, dir, rel))
			}
			sources[pkg] = all.String()
		}
		if !strings.Contains(sources[pkg], "func "+name+"(") {
			t.Errorf("docs/FAULTS.md names %s, which package %s does not have", name, pkg)
		}
	}
}
