//go:build !race

package lanes_test

const raced = false
