package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const enginePackage = "github.com/fdengine/fullduplex/fdengine"

// yields finds the constant that says how often the engine's writer yields before a claim.
var yields = regexp.MustCompile(`(?m)^(\s*yieldMax\s*=\s*)\d+`)

var errNoYields = errors.New("run: gather.go of the engine has no constant yieldMax")

// BuildUnyield builds this program into dir with an engine that never yields, and returns its path. The working
// directory must be that of the module. It needs the go command.
func BuildUnyield(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", enginePackage).Output()
	if err != nil {
		return "", fmt.Errorf("run: go list: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "gather.go")
	src, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	patched, err := withoutYields(src)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, "gather.go")
	if err := os.WriteFile(copied, patched, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: copied}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "unyield")
	if msg, err := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("run: go build: %w\n%s", err, msg)
	}
	return program, nil
}

func withoutYields(src []byte) ([]byte, error) {
	if !yields.Match(src) {
		return nil, errNoYields
	}
	return yields.ReplaceAll(src, []byte("${1}0")), nil
}
