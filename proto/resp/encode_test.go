package resp

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type marshaler struct{ err error }

func (m marshaler) MarshalBinary() ([]byte, error) { return []byte("bin"), m.err }

func TestCommandsAreWrittenAsArraysOfBulks(t *testing.T) {
	got, err := AppendCommand([]byte("x"), "SET", []byte("k"), 12, int8(-1), int16(2), int32(3), int64(math.MinInt64), uint(4), uint8(5),
		uint16(6), uint32(7), uint64(math.MaxUint64), 1.5, float32(0.1), true, false, marshaler{}, "")
	require.NoError(t, err)
	require.Equal(t, "x*18\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n12\r\n$2\r\n-1\r\n$1\r\n2\r\n$1\r\n3\r\n$20\r\n-9223372036854775808\r\n$1\r\n4\r\n"+
		"$1\r\n5\r\n$1\r\n6\r\n$1\r\n7\r\n$20\r\n18446744073709551615\r\n$3\r\n1.5\r\n$3\r\n0.1\r\n$1\r\n1\r\n$1\r\n0\r\n$3\r\nbin\r\n$0\r\n\r\n", string(got))
}

func TestWhatHasNoFormOnTheWireIsRefusedAndNothingIsWritten(t *testing.T) {
	cause := errors.New("cannot")
	for name, arg := range map[string]any{
		"nil": nil, "duration": time.Second, "time": time.Unix(1, 0), "struct": struct{}{}, "pointer": new(int),
		"named string": Error("x"), "marshaler": marshaler{cause}, "slice": []string{"a"},
	} {
		got, err := AppendCommand([]byte("x"), "SET", "k", arg)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "argument 2", name)
		require.Equal(t, "x", string(got), name)
	}
	_, err := AppendCommand(nil, "SET", marshaler{cause})
	require.ErrorIs(t, err, cause)
	_, err = AppendCommand(nil)
	require.Error(t, err)
}

func TestWritingAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 512)
	key, val := []byte("key"), []byte("value")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b := AppendArrayHeader(buf, 12)
		b = AppendBulkString(b, "SET")
		b = AppendBulk(b, key)
		b = AppendBulk(b, val)
		b = AppendBulkInt(b, -123456789)
		b = AppendBulkUint(b, 123456789)
		b = AppendBulkFloat(b, 1.25)
		_ = b
	}))
}
