package house_test

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/internal/house"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mayImport is who may import whom among the packages of the root module. A path that ends in / stands for all
// below it. Whatever is not listed may import nothing of ours.
var mayImport = map[string][]string{
	"panics":     {},
	"carry":      {},
	"proto/":     {},
	"pool":       {"panics"},
	"fdengine":   {"carry", "pool", "panics"},
	"lanes":      {"fdengine", "carry", "panics"},
	"cluster":    {"fdengine", "pool", "carry", "panics"},
	"redis":      {"cluster", "lanes", "fdengine", "pool", "carry", "panics", "proto/"},
	"beanstalkd": {"cluster", "fdengine", "pool", "carry", "panics", "proto/"},
	// Used by tests alone, which is why they may see everything.
	"internal/": {""},
	"bench":     {""},
}

// thirdParty is what the code of the root module may import beside the standard library; tests may also use
// testOnly.
var (
	thirdParty = []string{"github.com/valyala/bytebufferpool", "golang.org/x/sys", "github.com/cespare/xxhash/v2"}
	testOnly   = []string{"github.com/stretchr/testify", "go.uber.org/goleak"}
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := house.Root()
	require.NoError(t, err)
	return dir
}

// rootFiles lists the Go files of the root module: those not below another go.mod.
func rootFiles(t *testing.T, dir string) []string {
	t.Helper()
	mods, err := house.Files(dir, "go.mod")
	require.NoError(t, err)
	files, err := house.Files(dir, ".go")
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(f string) bool {
		return slices.ContainsFunc(mods, func(m string) bool {
			return m != "go.mod" && strings.HasPrefix(f, path.Dir(m)+"/")
		})
	})
}

// imports parses the import declarations of one file.
func imports(t *testing.T, dir, name string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ImportsOnly)
	require.NoError(t, err)
	var out []string
	for _, s := range f.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		require.NoError(t, err)
		out = append(out, p)
	}
	return out
}

func under(pkg, rule string) bool {
	return pkg == rule || rule == "" || strings.HasSuffix(rule, "/") && strings.HasPrefix(pkg, rule)
}

// forbidden says why a file of package from may not import path, or returns "".
func forbidden(from string, test bool, path string) string {
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		return "" // the standard library
	}
	pkg, ours := strings.CutPrefix(path, house.ModulePath+"/")
	if !ours {
		allowed := thirdParty
		if test || strings.HasPrefix(from, "internal/") {
			allowed = append(slices.Clone(allowed), testOnly...)
		}
		if slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") }) {
			return ""
		}
		return "no third-party module beyond the five"
	}
	if test && (pkg == from || under(pkg, "internal/")) {
		return ""
	}
	if !test && under(pkg, "internal/") && !under(from, "internal/") {
		return "internal packages are for tests"
	}
	for rule, may := range mayImport {
		if under(from, rule) && slices.ContainsFunc(may, func(m string) bool { return under(pkg, m) }) {
			return ""
		}
	}
	return "not in the import table"
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	dir := root(t)
	seen := map[string]bool{}
	for _, name := range rootFiles(t, dir) {
		from := path.Dir(name)
		seen[from] = true
		for _, p := range imports(t, dir, name) {
			if why := forbidden(from, house.IsTest(name), p); why != "" {
				t.Errorf("%s imports %s: %s", name, p, why)
			}
		}
	}
	require.True(t, seen["fdengine"] && seen["carry"], "the walk must see the packages: %v", seen)
}

func TestTheImportRuleSeesAViolation(t *testing.T) {
	ours := house.ModulePath + "/"
	for _, tc := range []struct {
		from, path string
		test, ok   bool
	}{
		{"carry", "errors", false, true},
		{"carry", ours + "panics", false, false},
		{"carry", ours + "internal/memnet", true, true},
		{"carry", ours + "internal/memnet", false, false},
		{"proto/resp", ours + "carry", false, false},
		{"fdengine", ours + "carry", false, true},
		{"fdengine", ours + "cluster", false, false},
		{"fdengine", ours + "cluster", true, false},
		{"redis", ours + "proto/resp", false, true},
		{"redis", ours + "jobs/submit", false, false},
		{"pool", "golang.org/x/sys/unix", false, true},
		{"pool", "golang.org/x/sysx", false, false},
		{"pool", "github.com/stretchr/testify/require", false, false},
		{"pool", "github.com/stretchr/testify/require", true, true},
		{"elsewhere", ours + "pool", false, false},
	} {
		require.Equal(t, tc.ok, forbidden(tc.from, tc.test, tc.path) == "", "%+v", tc)
	}
}
