//go:build !race

package carry

const raceEnabled = false
