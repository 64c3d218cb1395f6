package hostile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// Covers: E-16, C31, C42
func TestAPeerThatStopsReadingIsGivenUpAfterTheWriteTimeout(t *testing.T) {
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) {
			// Twice: within the first five seconds the kernel still took some.
			a := attack{size: 60 << 10, within: 10 * time.Second, options: fdengine.Options{ReadTimeout: -1}}
			a.evil = deaf
			a.dial = narrow
			a.calm = true // the others did not leave whole: they are sent, once
			a.check = maybe
			a.run(t, k)
		})
	}
}

// narrow gives the first connection a buffer that holds the first two commands and little more.
func narrow(n int, client, _ *memnet.Conn) {
	if n == 1 {
		client.Out().SetBuffer(4 << 10)
	}
}

// deaf reads nothing more.
func deaf(v *visit, _ request, m *meter) {
	m.sample()
	<-v.over
}

// Covers: E-16, C42
func TestAPeerThatReadsOneByteASecondIsGivenUpAfterTheReadTimeoutNotBefore(t *testing.T) {
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) {
			a := attack{size: 60 << 10, within: 5 * time.Second, dial: narrow, calm: true, options: fdengine.Options{WriteTimeout: 2 * time.Second}}
			a.evil = func(v *visit, _ request, _ *meter) {
				for b := make([]byte, 1); v.pause(time.Second); {
					if n, _ := v.raw.Read(b); n == 0 {
						return
					}
				}
			}
			a.check = func(t *testing.T, err error) {
				late(t, err)
				require.ErrorContains(t, err, "no reply within")
			}
			a.run(t, k)
		})
	}
}

// Covers: E-27, S2-10
func TestAPeerThatEndsItsHalfIsGivenUpAtOnce(t *testing.T) {
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) {
			attack{check: maybe, evil: func(v *visit, _ request, _ *meter) { require.NoError(t, v.raw.CloseWrite()) }}.run(t, k)
		})
	}
}
