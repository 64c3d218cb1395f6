package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/house"
)

// maySleep names the files of test code that may call time.Sleep on the real clock, and why.
var maySleep = map[string]string{}

func TestNoTestSleepsToWait(t *testing.T) {
	dir := root(t)
	names, err := house.Files(dir, ".go")
	require.NoError(t, err)
	packages := map[string][]string{}
	for _, name := range names {
		if house.IsTest(name) || strings.HasPrefix(name, "internal/") {
			packages[path.Dir(name)] = append(packages[path.Dir(name)], name)
		}
	}
	for _, names := range packages {
		set := token.NewFileSet()
		var files []*ast.File
		for _, name := range names {
			file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
		for _, at := range sleeps(set, files) {
			rel, err := filepath.Rel(dir, at.Filename)
			require.NoError(t, err)
			if rel = filepath.ToSlash(rel); maySleep[rel] == "" {
				t.Errorf("%s:%d: time.Sleep outside a synctest bubble", rel, at.Line)
			}
		}
	}
}

func TestASleepIsSeenOutsideABubbleOnly(t *testing.T) {
	src := `package x
func real() {
	time.Sleep(1)
	synctest.Test(t, func() { time.Sleep(2) })
	bubble(t, func() { time.Sleep(3) })
	other(t, func() { time.Sleep(4) })
}
func nested() { twice(t, func() { time.Sleep(6) }) }
func bubble(t, f) { synctest.Test(t, func() { f() }) }
func twice(t T, f func()) { bubble(t, f) }
func other(t, f) { f() }
func inside() { time.Sleep(5); synctest.Wait() }
`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "x.go", src, parser.SkipObjectResolution)
	require.NoError(t, err)
	var lines []int
	for _, at := range sleeps(set, []*ast.File{file}) {
		lines = append(lines, at.Line)
	}
	require.Equal(t, []int{3, 6}, lines)
}

// sleeps returns the calls of time.Sleep in the files of one package that may run on the real clock: those
// neither inside the arguments of synctest.Test, or of a function of the package that calls it, nor in a function
// that calls synctest.Wait, which panics outside a bubble.
func sleeps(set *token.FileSet, files []*ast.File) []token.Position {
	bubbles := map[string]bool{}
	for _, f := range functions(files) {
		if calls(f, "synctest", "Test") {
			bubbles[f.Name.Name] = true
		}
	}
	for grown := true; grown; { // helpers that hand their own function on to such a helper
		grown = false
		for _, f := range functions(files) {
			if !bubbles[f.Name.Name] && takesFunc(f) && callsOneOf(f, bubbles) {
				bubbles[f.Name.Name], grown = true, true
			}
		}
	}
	var out []token.Position
	for _, f := range functions(files) {
		if calls(f, "synctest", "Wait") && !bubbles[f.Name.Name] {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if helper, ok := call.Fun.(*ast.Ident); ok && bubbles[helper.Name] || isCall(call, "synctest", "Test") {
				return false
			}
			if isCall(call, "time", "Sleep") {
				out = append(out, set.Position(call.Pos()))
			}
			return true
		})
	}
	return out
}

// takesFunc says whether a parameter of f is a function.
func takesFunc(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			return true
		}
	}
	return false
}

func callsOneOf(f *ast.FuncDecl, names map[string]bool) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			helper, ok := call.Fun.(*ast.Ident)
			found = found || ok && names[helper.Name]
		}
		return !found
	})
	return found
}

func functions(files []*ast.File) (out []*ast.FuncDecl) {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func calls(f *ast.FuncDecl, pkg, name string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isCall(call, pkg, name) {
			found = true
		}
		return !found
	})
	return found
}

func isCall(c *ast.CallExpr, pkg, name string) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
