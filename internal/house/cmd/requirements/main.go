// Command requirements brings the last column of docs/REQUIREMENTS.md up to date with the tests, and prints
// how many rows are proven, later and open.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fdengine/fullduplex/internal/house"
)

func main() {
	if err := refresh(); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}

func refresh() error {
	root, err := house.Root()
	if err != nil {
		return err
	}
	name := filepath.Join(root, "docs", "REQUIREMENTS.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	covered, err := house.Covered(root)
	if err != nil {
		return err
	}
	na, err := house.NotApplicable(root)
	if err != nil {
		return err
	}
	text := house.Refresh(string(old), covered, na)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return err
	}
	proven, later, open := 0, 0, 0
	for line := range strings.Lines(text) {
		switch r, ok := house.Row(strings.TrimSuffix(line, "\n")); {
		case !ok:
		case strings.HasPrefix(r.Proven, "later:"):
			later++
		case r.Proven == "open":
			open++
		default:
			proven++
		}
	}
	fmt.Printf("proven or not applicable %d, later %d, open %d\n", proven, later, open)
	return nil
}
