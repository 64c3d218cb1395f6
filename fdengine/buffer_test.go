package fdengine_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
)

// owner is a command that gives a buffer of its own instead of appending to the one it is given.
type owner struct {
	*scripted.Cmd
	req []byte
}

func (o *owner) AppendRequest([]byte) ([]byte, error) { return o.req, nil }

//
func TestABufferOfTheEncodersOwnIsNeverWrittenTo(t *testing.T) {
	for _, size := range []int{10, 1000, carry.BigRequest, 100_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			bubble(t, setup{}, func(t *testing.T, r *rig) {
				own := &owner{Cmd: scripted.Echo("own")}
				own.req = append(make([]byte, 0, 2*size), scripted.AppendRequest(nil, "ECHO", "own", string(bytes.Repeat([]byte("o"), size)))...)
				before := bytes.Clone(own.req[:cap(own.req)])
				for i := range 20 {
					require.NoError(t, r.Do(bg, own))
					other := scripted.Echo(fmt.Sprintf("other%d", i))
					other.Args = []string{strings.Repeat("x", size-i%7)}
					require.NoError(t, r.Do(bg, other))
					require.Equal(t, before, own.req[:cap(own.req)])
				}
				require.NoError(t, r.DoBatch(bg, []fdengine.Command{own, scripted.Echo("b"), own, scripted.Echo("c")}, nil))
				require.Equal(t, before, own.req[:cap(own.req)])
			})
		})
	}
}
