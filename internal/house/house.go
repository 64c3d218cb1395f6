// Package house holds the rules of this repository that a compiler does not: who may import whom, how large a
// file gets, what every package's tests begin with. It reads source files and knows nothing of what they do.
// Its tests are the rules; the code here finds files and reads the table of requirements. For tests only.
package house

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ModulePath is the path of the root module; those of the other modules begin with it.
const ModulePath = "github.com/fdengine/fullduplex"

// Root returns the directory of the repository, looking upwards from the working directory for the go.mod of
// the root module.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module "+ModulePath+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("not inside the repository of " + ModulePath)
		}
		dir = up
	}
}

// Files lists the files below root whose name ends in one of the endings, as slash-separated paths relative to
// root. Directories that begin with a dot, except .ci, and bin are left out, as are testdata directories.
func Files(root string, endings ...string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") && name != ".ci" || name == "bin" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, e := range endings {
			if strings.HasSuffix(name, e) {
				rel, err := filepath.Rel(root, path)
				out = append(out, filepath.ToSlash(rel))
				return err
			}
		}
		return nil
	})
	return out, err
}

// IsTest reports whether path is compiled into tests only.
func IsTest(path string) bool { return strings.HasSuffix(path, "_test.go") }
